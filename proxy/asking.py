"""What one session asks of the backend to decide about a statement: descriptions, keys, lists of partitions.

Each question is a generator: it yields queries for the client's own session, and is sent their results.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from proxy.catalog import (
    Described,
    describe_query,
    read_description,
    read_identity,
    read_view_text,
    view_text_query,
)
from proxy.file_index import Overview
from proxy.known import Known
from proxy.partition_lists import PartitionLists
from proxy.queries import FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.shared import Shared
from proxy.store import ListKey
from proxy.writes import Fence
from rewriter import (
    VIEW_NESTING_MAX,
    Keys,
    Limits,
    Plan,
    Question,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    plan,
)
from rewriter.costs import PartitionCosts
from rewriter.files import FileIndex
from rewriter.partition_index import PartitionIndex

T = TypeVar("T")
Queries: TypeAlias = Generator[Query, QueryResult, T]
KeyAnswers: TypeAlias = dict[Question, Keys | SkipReason]

# A statement's plan names its tables, then those behind its views, then those behind these.
_PLANNING_ROUNDS_MAX = VIEW_NESTING_MAX + 2

# What is left to a question's second form where the first has taken all of its time: to be counted as late.
_DEADLINE_MIN_S = 0.1

_QUOTING_SETTINGS = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")

_FAILURES = {
    FailureKind.DEADLINE: SkipReason.KEY_QUERY_DEADLINE,
    FailureKind.BUSY: SkipReason.KEY_QUERY_DEADLINE,
    FailureKind.TOO_MANY_ROWS: SkipReason.TOO_MANY_KEYS,
    FailureKind.TOO_MANY_BYTES: SkipReason.TOO_MANY_KEYS,
}


@dataclass
class Timings:
    """Where the time of a decision went, in seconds. Parsing and planning are what is left of the total."""

    catalog_s: float = 0.0
    key_queries_s: float = 0.0
    # To fetch what the file index says of a table's files: once for all statements until it changes.
    files_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True)
class Memory:
    """Whose remembered keys a statement may use, and how old they may be in seconds."""

    state: bytes
    staleness_s: float


@dataclass(frozen=True)
class Listed:
    """A table's partitions, and by what key they are kept."""

    key: ListKey
    index: PartitionIndex


class Asking:
    """What one client session was told of its tables and settings, and what it asks for."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._clock = shared.clock
        self._catalog = catalog = shared.config.catalog
        self._lists = PartitionLists(shared.lists, catalog, shared.clock)
        self._own = shared.knowledge.of_nobody_else()
        self._known: Known = self._own

    def enter(self, state: bytes | None) -> None:
        """The session is in this state now (`SessionState.digest`)."""
        self._known = self._own if state is None else self._shared.knowledge.of(state)

    def forget(self, words: Collection[str]) -> None:
        """Names and settings may mean something else from here on, for all sessions of this state.

        So may the tables among these words, of which the file index may be one. Those that it tells of need not be
        asked for again (`proxy.file_lists`).
        """
        self._own.forget()
        self._own.indexed = None
        self._known.forget()
        if self._shared.files.is_named_by(words):
            self._known.indexed = None

    def described(self, name: TableName) -> Described:
        """What is known of a table that a plan names."""
        return self._known.facts.described(name)

    def partition_count(self, name: TableName) -> int | None:
        """How many partitions a table has, where its list is at hand."""
        return self._lists.count(self.described(name), self._known)

    def indexed_at_hand(self) -> Overview | None:
        """What the file index has, where nothing has to be asked to know that."""
        return self._shared.files.overview_at_hand(self._known)

    def indexed(self, timings: Timings) -> Queries[Overview]:
        """What the file index has, as far as the session may read it."""
        start = self._clock()
        overview = yield from self._shared.files.overview(self._known)
        timings.catalog_s += self._clock() - start
        return overview

    def indexed_bytes(self, name: TableName) -> int | None:
        """The size of a table's files, where the file index knows them."""
        facts = self.described(name).facts
        return self._shared.files.size_bytes(facts, self._known) if facts is not None else None

    def quoting_is_default(self) -> Queries[bool]:
        """Whether the session's quotes and backslashes mean what they mean by default."""
        known = self._known
        if known.default_quoting is None:
            values = []
            for setting in _QUOTING_SETTINGS:
                answer = yield Query(f"SET {setting}", rows_max=1, bytes_max=65_536, deadline_s=5.0)
                values.append(answer.rows[0][1] if isinstance(answer, Rows) and answer.rows else None)
            known.default_quoting = all(value == "false" for value in values)
        return known.default_quoting

    def plan(self, statement: Statement, limits: Limits, timings: Timings) -> Queries[Plan | SkipReason]:
        """Plan a statement, with whatever has to be known of its tables."""
        asked: set[TableName] = set()
        facts = self._known.facts
        for _ in range(_PLANNING_ROUNDS_MAX):
            planned = plan(statement, facts.current(), limits)
            if not planned.missing:
                return planned
            if planned.missing <= asked:
                break  # they change under us, or are more than the session may keep
            for name in sorted(planned.missing, key=str):
                generation = facts.generation
                described = yield from self._describe(name, timings)
                facts.add(described, generation)
            asked |= planned.missing
        return SkipReason.TABLES_UNSETTLED

    def _describe(self, name: TableName, timings: Timings) -> Queries[Described]:
        answer = yield describe_query(name, self._catalog)
        timings.catalog_s += answer.seconds
        facts = read_description(answer)
        if facts is not None and facts.kind is TableKind.TABLE:
            facts = yield from self._with_indexed(facts, timings)
        if facts is None or facts.kind is TableKind.TABLE or facts.view is not None:
            return Described(name, facts, read_identity(answer))
        answer = yield view_text_query(name, self._catalog)
        timings.catalog_s += answer.seconds
        return Described(name, replace(facts, view=read_view_text(answer)))

    def _with_indexed(self, facts: TableFacts, timings: Timings) -> Queries[TableFacts]:
        start = self._clock()
        columns = yield from self._shared.files.columns(facts, self._known)
        timings.catalog_s += self._clock() - start
        return replace(facts, indexed_columns=columns)

    def keys(self, planned: Plan, memory: Memory | None, fence: Fence, timings: Timings) -> Queries[KeyAnswers]:
        """The keys of all small sides, or why there are none; `fence` was opened before."""
        answers: KeyAnswers = {}
        while pending := planned.pending(answers):
            for question in pending:
                known = self._remembered(question, memory)
                answers[question] = (
                    known if known is not None else (yield from self._asked(question, memory, fence, timings))
                )
        return answers

    def _remembered(self, question: Question, memory: Memory | None) -> Keys | None:
        if memory is None:
            return None
        return self._shared.keys.get(memory.state, question, asked_since=self._clock() - memory.staleness_s)

    def _asked(
        self, question: Question, memory: Memory | None, fence: Fence, timings: Timings
    ) -> Queries[Keys | SkipReason]:
        asked_at = self._clock()
        keys = yield from self._answer(question, timings)
        if memory is not None and not isinstance(keys, SkipReason):
            self._shared.keys.put(
                memory.state, question, keys, tables=question.tables, asked_at=asked_at, fence=fence
            )
        return keys

    def _answer(self, question: Question, timings: Timings) -> Queries[Keys | SkipReason]:
        """The keys, asked for in the cheapest form whose answer is not known to be too long."""
        settings, too_long = self._shared.config.rewrite, self._known.too_long
        deadline = self._clock() + settings.key_query_deadline_s
        for sql in filter(None, (question.repeating, question.sql)):
            if too_long.holds(sql):
                continue
            answer = yield Query(
                sql,
                rows_max=question.answer_rows_max,
                bytes_max=settings.key_query_bytes_max,
                deadline_s=max(_DEADLINE_MIN_S, deadline - self._clock()),
                needs_slot=True,
            )
            timings.key_queries_s += answer.seconds
            self._shared.metrics.key_query_answered(answer)
            keys = _keys(question, answer)
            if keys is not SkipReason.TOO_MANY_KEYS:
                return keys
            too_long.add(sql)
        return SkipReason.TOO_MANY_KEYS

    def partitions(self, names: Iterable[TableName], timings: Timings) -> Queries[dict[TableName, Listed]]:
        """The partition lists of tables, of those that can be listed."""
        lists = {}
        for name in sorted(names, key=str):
            start = self._clock()
            found = yield from self._lists.find(self.described(name), self._known)
            timings.catalog_s += self._clock() - start
            if found is not None:
                lists[name] = Listed(*found)
        return lists

    def files(self, names: Iterable[TableName], timings: Timings) -> Queries[dict[TableName, FileIndex]]:
        """What the file index says of the files of tables, of those that it has."""
        start, found = self._clock(), {}
        for name in sorted(names, key=str):
            known, described = self._known.facts, self.described(name)
            generation = known.generation
            if described.facts is None:
                continue
            index = yield from self._shared.files.files(described.facts, self._known)
            if index is not None:
                found[name] = index
            # By now it is known which columns the index has.
            facts = yield from self._with_indexed(described.facts, Timings())
            if facts != described.facts:
                known.add(replace(described, facts=facts), generation)
        timings.files_s += self._clock() - start
        return found

    def costs(self, listed: Mapping[TableName, Listed]) -> dict[TableName, Mapping[str, PartitionCosts]]:
        """Where the partitions of the lists lie."""
        return {name: self._lists.costs(one.key, one.index) for name, one in listed.items()}


def _keys(question: Question, answer: QueryResult) -> Keys | SkipReason:
    """The keys in an answer, or why there are none that can be used."""
    if isinstance(answer, QueryFailed):
        return _FAILURES.get(answer.kind, SkipReason.KEY_QUERY_FAILED)
    return question.read(answer.rows)
