"""What is decided about a statement: whether it is narrowed, by which keys, and why not. No sockets, no asyncio.

A decision is a generator: it yields the queries that it needs answered in the client's own session, and
returns what came of it. Whoever holds the connection drives it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from proxy.catalog import (
    Described,
    FactsCache,
    describe_query,
    read_description,
    read_identity,
    read_view_text,
    view_text_query,
)
from proxy.config import RewriteSection
from proxy.partition_lists import PartitionLists
from proxy.queries import FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.shared import Shared
from proxy.store import ListKey
from rewriter import (
    VIEW_NESTING_MAX,
    Keys,
    Limits,
    Plan,
    Question,
    Rewrite,
    SkipReason,
    Statement,
    TableKind,
    TableName,
    apply,
    may_have_a_join,
    plan,
    read,
)
from rewriter.partition_index import PartitionIndex
from rewriter.statement import depends_on_quoting

T = TypeVar("T")
Queries: TypeAlias = Generator[Query, QueryResult, T]
KeyAnswers: TypeAlias = dict[Question, Keys | SkipReason]
_Listed: TypeAlias = dict[TableName, tuple[ListKey, PartitionIndex]]

# A statement's plan names its tables, then those behind its views, then those behind these.
_PLANNING_ROUNDS_MAX = VIEW_NESTING_MAX + 2

_QUOTING_SETTINGS = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")

_FAILURES = {
    FailureKind.DEADLINE: SkipReason.KEY_QUERY_DEADLINE,
    FailureKind.TOO_MANY_ROWS: SkipReason.TOO_MANY_KEYS,
    FailureKind.TOO_MANY_BYTES: SkipReason.TOO_MANY_KEYS,
}


@dataclass
class Timings:
    """Where the time of a decision went, in seconds. Parsing and planning are what is left of the total."""

    catalog_s: float = 0.0
    key_queries_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What was decided about a statement. `plan` and `rewrite` are None where it was not even parsed."""

    original: str
    skip: SkipReason | None = None
    plan: Plan | None = None
    rewrite: Rewrite | None = None
    # The partitions of facts that have reducers, where they could be listed. Only explain asks for all of them.
    partitions: Mapping[TableName, PartitionIndex] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)

    @property
    def text(self) -> str:
        """The statement to send."""
        return self.rewrite.text if self.rewrite is not None else self.original


class Decider:
    """What one client session knows of its tables and settings, and what it decides by that."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._clock = shared.clock
        catalog = shared.config.catalog
        self._catalog = catalog
        self._facts = FactsCache(catalog, shared.clock)
        self._lists = PartitionLists(shared.lists, catalog, shared.clock)
        self._default_quoting: bool | None = None

    def forget(self, sql: str) -> None:
        """A statement passes that may change what names and settings mean, and which partitions there are."""
        self._facts.clear()
        self._shared.lists.forget_named_in(sql)
        self._default_quoting = None

    def decide(self, sql: str) -> Queries[Decision]:
        """Decide what to send for a statement."""
        return (yield from self._decide(sql, Timings(), run_key_queries=True))

    def explain(self, sql: str, *, run_key_queries: bool) -> Queries[Decision]:
        """Decide as `decide` does, and list the partitions; without key queries nothing is inserted."""
        timings = Timings()
        start = self._clock()
        decision = yield from self._decide(sql, timings, run_key_queries=run_key_queries)
        scans = decision.plan.scans if decision.plan is not None else ()
        reduced = dict.fromkeys(scan.reference.name for scan in scans if scan.reducers and scan.partition_columns)
        # Some were listed already, to say many keys in few ranges.
        listed = yield from self._list_partitions(reduced.keys() - decision.partitions.keys(), timings)
        timings.total_s = self._clock() - start
        return replace(decision, partitions={**decision.partitions, **_indexes(listed)}, timings=timings)

    def _decide(self, sql: str, timings: Timings, *, run_key_queries: bool) -> Queries[Decision]:
        settings = self._shared.config.rewrite
        statement = yield from self._read(sql, settings)
        if isinstance(statement, SkipReason):
            return Decision(sql, skip=statement)
        limits = Limits(
            key_rows_max=settings.key_rows_max,
            key_ranges_max=settings.key_ranges_max,
            key_queries_max=settings.key_queries_max,
            metastore=self._shared.metastore.consumer,
            predicate_chars_max=settings.predicate_chars_max,
        )
        planned = yield from self._plan(statement, limits, timings)
        if isinstance(planned, SkipReason):
            return Decision(sql, skip=planned)
        answers: KeyAnswers = {}
        if run_key_queries:
            answers = yield from self._ask_keys(planned, timings)
        listed = yield from self._list_partitions(planned.wants_partitions(answers), timings)
        costs = {name: self._lists.costs(key, index) for name, (key, index) in listed.items()}
        result = apply(planned, answers, limits, costs)
        return Decision(sql, result.skip, planned, result, _indexes(listed), timings)

    def _read(self, sql: str, settings: RewriteSection) -> Queries[Statement | SkipReason]:
        if depends_on_quoting(sql) and len(sql) <= settings.statement_chars_max and may_have_a_join(sql):
            default = yield from self._quoting_is_default()
            if not default:
                return SkipReason.QUOTING_SETTINGS
        return read(sql, chars_max=settings.statement_chars_max)

    def _quoting_is_default(self) -> Queries[bool]:
        if self._default_quoting is None:
            values = []
            for setting in _QUOTING_SETTINGS:
                answer = yield Query(f"SET {setting}", rows_max=1, bytes_max=65_536, deadline_s=5.0)
                values.append(answer.rows[0][1] if isinstance(answer, Rows) and answer.rows else None)
            self._default_quoting = all(value == "false" for value in values)
        return self._default_quoting

    def _plan(self, statement: Statement, limits: Limits, timings: Timings) -> Queries[Plan | SkipReason]:
        asked: set[TableName] = set()
        for _ in range(_PLANNING_ROUNDS_MAX):
            planned = plan(statement, self._facts.current(), limits)
            if not planned.missing:
                return planned
            if planned.missing <= asked:
                break  # they change under us, or are more than the session may keep
            for name in sorted(planned.missing, key=str):
                described = yield from self._describe(name, timings)
                self._facts.add(described)
            asked |= planned.missing
        return SkipReason.TABLES_UNSETTLED

    def _describe(self, name: TableName, timings: Timings) -> Queries[Described]:
        answer = yield describe_query(name, self._catalog)
        timings.catalog_s += answer.seconds
        facts = read_description(answer)
        if facts is None or facts.kind is TableKind.TABLE or facts.view is not None:
            return Described(name, facts, read_identity(answer))
        answer = yield view_text_query(name, self._catalog)
        timings.catalog_s += answer.seconds
        return Described(name, replace(facts, view=read_view_text(answer)))

    def _ask_keys(self, planned: Plan, timings: Timings) -> Queries[KeyAnswers]:
        settings = self._shared.config.rewrite
        answers: KeyAnswers = {}
        while pending := planned.pending(answers):
            for key_query in pending:
                answer = yield Query(
                    key_query.sql,
                    rows_max=key_query.answer_rows_max,
                    bytes_max=settings.key_query_bytes_max,
                    deadline_s=settings.key_query_deadline_s,
                )
                timings.key_queries_s += answer.seconds
                answers[key_query] = _keys(key_query, answer)
        return answers

    def _list_partitions(self, names: Iterable[TableName], timings: Timings) -> Queries[_Listed]:
        lists: _Listed = {}
        for name in sorted(names, key=str):
            start = self._clock()
            found = yield from self._lists.find(self._facts.described(name))
            timings.catalog_s += self._clock() - start
            if found is not None:
                lists[name] = found
        return lists


def _indexes(listed: _Listed) -> dict[TableName, PartitionIndex]:
    return {name: index for name, (_, index) in listed.items()}


def _keys(question: Question, answer: QueryResult) -> Keys | SkipReason:
    """The keys in an answer, or why there are none that can be used."""
    if isinstance(answer, QueryFailed):
        return _FAILURES.get(answer.kind, SkipReason.KEY_QUERY_FAILED)
    return question.read(answer.rows)
