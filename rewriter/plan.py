"""The only way in: `plan` says what may be narrowed and which keys to fetch, `apply` inserts predicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rewriter.catalog import Catalog, TableName
from rewriter.keyquery import KeyQuery
from rewriter.keys import KeySet, UnreadableKeyError
from rewriter.predicate import Predicate, render
from rewriter.reducers import Reducer
from rewriter.scans import PlannedScan, refused, scans
from rewriter.scopes import Scopes
from rewriter.skip import SkipReason
from rewriter.splice import Narrowing, narrowed
from rewriter.statement import Statement
from rewriter.views import see_through


@dataclass(frozen=True)
class Limits:
    """Bounds of one rewrite. What they are for is said where the configuration sets them."""

    key_rows_max: int = 4_000
    key_queries_max: int = 8
    metastore_in_max: int = 100
    predicate_chars_max: int = 128 * 1024


@dataclass(frozen=True)
class Plan:
    """What may be done to a statement. `missing` names the tables whose facts are needed to tell."""

    statement: Statement
    scans: tuple[PlannedScan, ...]
    missing: frozenset[TableName] = frozenset()

    @property
    def key_queries(self) -> tuple[KeyQuery, ...]:
        """The key queries to run first, each once however many scans use it."""
        return self.pending({})

    def pending(self, answers: Mapping[KeyQuery, KeyAnswer]) -> tuple[KeyQuery, ...]:
        """The key queries to run next, given what others answered; none once all has been asked."""
        asked = (r.key_query for scan in self.scans for r in _effective(scan, answers))
        return tuple(query for query in dict.fromkeys(asked) if query not in answers)


# What became of a key query: its keys, or why there are none.
KeyAnswer: TypeAlias = KeySet | SkipReason


def _effective(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer]) -> Iterator[Reducer]:
    """The scan's reducers, those of one column where there are too many keys of several."""
    for reducer in scan.reducers:
        together = answers.get(reducer.key_query) is not SkipReason.TOO_MANY_KEYS
        yield from (reducer,) if together or not reducer.apart else reducer.apart


@dataclass(frozen=True)
class ScanOutcome:
    """What was done to one scan, and why not more."""

    scan: PlannedScan
    predicate: str | None = None
    exact: bool | None = None
    skip: SkipReason | None = None
    # The reducers that were asked last, and the keys of each; None where they are not known.
    reducers: tuple[tuple[Reducer, KeySet | None], ...] = ()

    @property
    def narrowed_by(self) -> tuple[tuple[tuple[str, ...], KeySet], ...]:
        """The columns that the predicate restricts, with the keys that they are restricted to together."""
        if self.predicate is None:
            return ()
        return tuple((reducer.columns, keys) for reducer, keys in self.reducers if keys is not None)


@dataclass(frozen=True)
class Rewrite:
    """The text to send, and what was done. `text` is the original unless a scan was narrowed."""

    text: str
    scans: tuple[ScanOutcome, ...]
    skip: SkipReason | None = None


def plan(statement: Statement, catalog: Catalog, limits: Limits) -> Plan:
    """Find the fact scans that may be narrowed, given what is known of the tables.

    Where tables are missing from the catalog, the plan names them and finds nothing: look them up and
    plan again.
    """
    scopes = Scopes(statement, catalog)
    seen = see_through(scopes.tables if scopes.may_narrow else frozenset(), catalog)
    if seen.missing:
        return Plan(statement, (), seen.missing)
    if seen.catalog is not catalog:
        scopes = Scopes(statement, seen.catalog)
    if statement.target in {name.parts[-1].lower() for name in seen.names}:
        return Plan(statement, refused(scopes, SkipReason.WRITES_WHAT_IT_READS))
    return Plan(statement, scans(scopes, limits.key_rows_max, limits.key_queries_max))


def apply(plan: Plan, answers: Mapping[KeyQuery, KeyAnswer], limits: Limits) -> Rewrite:
    """Insert the predicates that the key sets give. A key query without an answer narrows nothing."""
    outcomes = tuple(_outcome(scan, answers, limits) for scan in plan.scans)
    narrowings = [_narrowing(plan.statement, outcome) for outcome in outcomes if outcome.predicate is not None]
    if not narrowings:
        return Rewrite(plan.statement.text, outcomes)
    text = narrowed(plan.statement, narrowings)
    if text is None:
        return Rewrite(plan.statement.text, outcomes, SkipReason.NOT_VERIFIED)
    return Rewrite(text, outcomes)


def _outcome(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer], limits: Limits) -> ScanOutcome:
    """AND the predicates of the reducers that have an answer."""
    predicates: list[Predicate] = []
    skip = scan.skip
    reducers: list[tuple[Reducer, KeySet | None]] = []
    for reducer in _effective(scan, answers):
        answer = answers.get(reducer.key_query, SkipReason.KEYS_NOT_ASKED)
        predicate = _predicate(reducer, answer, limits)
        if isinstance(predicate, SkipReason):
            skip = predicate
            reducers.append((reducer, None))
        else:
            predicates.append(predicate)
            reducers.append((reducer, answer if isinstance(answer, KeySet) else None))
    if not predicates:
        return ScanOutcome(scan, skip=skip, reducers=tuple(reducers))
    sql = " AND ".join(dict.fromkeys(predicate.sql for predicate in predicates))
    if len(sql) > limits.predicate_chars_max:
        return ScanOutcome(scan, skip=SkipReason.PREDICATE_TOO_LARGE, reducers=tuple(reducers))
    return ScanOutcome(scan, sql, exact=all(p.exact for p in predicates), reducers=tuple(reducers))


def _predicate(reducer: Reducer, answer: KeyAnswer, limits: Limits) -> Predicate | SkipReason:
    if isinstance(answer, SkipReason):
        return answer
    if answer.type_names != tuple(column.type_name for column in reducer.key_query.columns):
        return SkipReason.KEY_TYPE_CHANGED
    if len(answer.rows) > reducer.key_query.rows_max:
        return SkipReason.TOO_MANY_KEYS
    try:
        return render(reducer.columns, answer, metastore_in_max=limits.metastore_in_max)
    except UnreadableKeyError:
        return SkipReason.UNREADABLE_KEY


def _narrowing(statement: Statement, outcome: ScanOutcome) -> Narrowing:
    reference = outcome.scan.reference
    alias = None if reference.has_alias else reference.alias_text(statement)
    return Narrowing(reference.start, reference.stop, alias, outcome.predicate or "")
