"""The fast sieve: the same statement with and without its insertions, on DuckDB, compared as multisets."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

import duckdb
from duckdb_dialect import prepare, to_duckdb
from grammar import TARGET, Query, random_query
from seeding import how_to_run, seeded
from shrink import shrunk
from sqlglot.errors import SqlglotError
from star_tables import VALUES, Schema, Star, StarView, Table, catalog, random_star
from tally import FAILURES_MAX, Tally

from rewriter import (
    KeyQuery,
    KeyRanges,
    Keys,
    KeySet,
    PartitionMatches,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.domains.literals import Key
from rewriter.domains.widen import Consumer
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import DEFAULT_PARTITION
from rewriter.partitions.value_encoding import NotIndexableError

Answer = Counter[tuple[str, ...]]
MakeQuery = Callable[[Star, Random], Query]
Answers = Mapping[KeyQuery, Keys | SkipReason]

LIMITS = RewriteLimits()
_CHARS_MAX = 100_000
# The part of the partitions that a list has: the others came after it was read.
_LISTED = 0.8
# A day and a name that no session has.
_OTHER = {True: "DATE'1999-12-31'", False: "'nowhere'"}
# Statements asked of one set of tables: making the tables costs as much as asking a few.
STATEMENTS_PER_SEED = 40


class NotRunError(Exception):
    """DuckDB or the translation to it does not take the statement."""


class NoVerdictError(NotRunError):
    """A failure that says nothing of the rewrite, also where the original did not fail."""


class EngineError(NoVerdictError):
    """An error within DuckDB, such as `unordered_map::at` of its optimizer (1.5, filters below a UNION).

    Correlated LATERAL subqueries beside an anti join end in its InternalException.
    """


class NotCastError(NoVerdictError):
    """A cast between types that differ fails. On which rows it is tried depends on DuckDB's plan."""


class BrokenKeyQueryError(Exception):
    """A key query that is no Spark SQL."""


class Sieve:
    """The tables of a star in a DuckDB of their own."""

    def __init__(self, star: Star) -> None:
        self.star = star
        self._connection = duckdb.connect()
        prepare(self._connection)
        for table in star.tables:
            _ = self._connection.execute(table.duckdb_statement())
            if table.rows:
                slots = ", ".join("?" * len(table.columns))
                _ = self._connection.executemany(f"INSERT INTO {table.name} VALUES ({slots})", table.rows)

        self._views: tuple[StarView, ...] = ()

    @property
    def schema(self) -> Schema:
        """The tables, and the views of the statement at hand."""
        return schema_of(self.star, self._views)

    def make_views(self, views: tuple[StarView, ...]) -> None:
        """Make the views of a statement, in place of those of another one. Raises NotRunError."""
        if views == self._views:
            return
        for view in reversed(self._views):
            _ = self._connection.execute(f"DROP VIEW IF EXISTS {view.name}")
        self._views = views
        try:
            for view in views:
                _ = self._connection.execute(to_duckdb(view.statement, self.schema))
        except (duckdb.Error, SqlglotError) as error:
            raise NotRunError(_first_line(error)) from error

    def close(self) -> None:
        """Forget the tables."""
        self._connection.close()

    def answer(self, sql: str, query: Query) -> Answer:
        """The rows of a statement, or those it wrote. Raises NotRunError."""
        self.make_views(query.views)
        try:
            if query.read_back is None:
                return self._rows(sql)
            for statement in (f"DROP TABLE IF EXISTS {TARGET}", *query.setup, sql):
                _ = self._connection.execute(to_duckdb(statement, self.schema))
            return self._rows(query.read_back)
        except duckdb.ConversionException as error:
            raise NotCastError(type(error).__name__) from error
        except (duckdb.Error, SqlglotError) as error:
            is_of_engine = isinstance(error, duckdb.InternalException) or "unordered_map::at" in str(error)
            kind = EngineError if is_of_engine else NotRunError
            raise kind(_first_line(error)) from error

    def _rows(self, sql: str) -> Answer:
        rows = self._connection.execute(to_duckdb(sql, self.schema)).fetchall()
        return Counter(tuple(map(_comparable, row)) for row in rows)

    def keys(self, key_query: KeyQuery) -> Keys | SkipReason:
        """What the proxy would make of the key query's answer."""
        try:
            rows = self._connection.execute(to_duckdb(key_query.sql, self.schema)).fetchall()
        except duckdb.Error:
            return SkipReason.KEY_QUERY_FAILED
        except SqlglotError as error:
            raise BrokenKeyQueryError(f"{key_query.sql}\n{error}") from error
        return key_query.read([tuple(map(_on_the_wire, row)) for row in rows])


@dataclass(frozen=True)
class Wrong:
    """A statement that was answered wrongly, and how."""

    index: int
    star: Star
    query: Query
    report: str


def check_seed(seed: int, statements: int = STATEMENTS_PER_SEED, make: MakeQuery = random_query) -> Tally:
    """Make the seed's tables and statements and compare every answer."""
    tally = Tally()
    for wrong in wrong_answers(seed, statements, tally, make):
        small = _shrunk_report(wrong.star, wrong.query)
        rerun = how_to_run("test_sieve.py", seed)
        tally.failures.append(
            f"seed {seed}, statement {wrong.index}: {rerun}\n{wrong.report}\n\nshrunk:\n{small}\n\n{wrong.star}"
        )
        if len(tally.failures) >= FAILURES_MAX:
            break
    return tally


def wrong_answers(
    seed: int,
    statements: int = STATEMENTS_PER_SEED,
    tally: Tally | None = None,
    make: MakeQuery = random_query,
) -> Iterator[Wrong]:
    """The seed's statements that are answered wrongly, at most one report for each."""
    tally = Tally() if tally is None else tally
    star = random_star(seeded(seed))
    sieve = Sieve(star)
    try:
        for index in range(statements):
            # A statement can be made again without those before it.
            rng = seeded(seed, index)
            query = make(star, rng)
            failure = next(check(sieve, query, rng, tally), None)
            if failure is not None:
                yield Wrong(index, star, query, failure)
    finally:
        sieve.close()


def _shrunk_report(star: Star, query: Query) -> str:
    star, query = shrunk(star, query, _runs_and_differs)
    return "\n".join([*_check_once(star, query), "", str(star)])


def _runs_and_differs(star: Star, query: Query) -> bool:
    """Whether the statement is still one that runs, and still goes wrong."""
    sieve = Sieve(star)
    try:
        _ = sieve.answer(query.sql, query)
        return any(check(sieve, query, seeded(0), Tally()))
    except NotRunError:
        return False
    finally:
        sieve.close()


def _check_once(star: Star, query: Query) -> list[str]:
    sieve = Sieve(star)
    try:
        return list(check(sieve, query, seeded(0), Tally()))
    finally:
        sieve.close()


def check(sieve: Sieve, query: Query, rng: Random, tally: Tally) -> Iterator[str]:
    """Compare the answers to one statement; yields what is wrong."""
    tally.outcomes["statements"] += 1
    tally.shapes.update(query.shapes)
    try:
        sieve.make_views(query.views)
    except NotRunError as error:
        tally.outcomes["not run"] += 1
        tally.not_run[str(error)] += 1
    else:
        yield from _check(sieve, query, rng, tally)


def _check(sieve: Sieve, query: Query, rng: Random, tally: Tally) -> Iterator[str]:
    """The same for a statement whose views are there."""
    try:
        planned = planned_on(query.sql, sieve.schema)
    except Exception as error:  # noqa: BLE001 - no text may make the rewriter raise
        yield f"original:  {query.sql}\nplanning raises {error!r}"
        return
    if isinstance(planned, SkipReason):
        tally.outcomes["left alone"] += 1
        tally.skips[planned.name] += 1
        return
    try:
        answers: dict[KeyQuery, Keys | SkipReason] = {}
        planned = with_lists(planned, answers, sieve.star, rng)
        while pending := planned.pending(answers):
            answers |= {key_query: sieve.keys(key_query) for key_query in pending}
            planned = with_lists(planned, answers, sieve.star, rng)
    except BrokenKeyQueryError as error:
        yield f"original:  {query.sql}\nkey query: {error}"
        return
    result = apply(planned, answers, LIMITS)
    tally.skips.update(scan.skip.name for scan in result.scans if scan.skip is not None)
    tally.outcomes.update(a.name for a in answers.values() if isinstance(a, SkipReason))
    if result.text == query.sql:
        tally.outcomes["left alone"] += 1
        return
    tally.outcomes["narrowed"] += 1
    tally.outcomes["narrowed by a list of partitions"] += Rule.PARTITION_LIST in result.rules
    tally.outcomes["narrowed by a fact that is narrowed"] += Rule.FOLLOWED_FACTS in result.rules
    tally.narrowed_shapes.update(query.shapes)
    if not query.comparable:
        yield from _random_keys(sieve, planned, answers)
        return
    try:
        expected = sieve.answer(query.sql, query)
    except NotRunError as error:
        tally.outcomes["not run"] += 1
        tally.not_run[str(error)] += 1
        return
    tally.outcomes["compared"] += 1
    tally.outcomes["compared, not empty"] += bool(expected)
    for what, text in {"rewritten": result.text, **_variants(planned, answers, rng)}.items():
        try:
            yield from _differences(sieve, query, expected, what, text)
        except NoVerdictError as error:
            tally.not_run[f"rewritten: {error}"] += 1


def schema_of(star: Star, views: tuple[StarView, ...]) -> Schema:
    """The tables and views that a statement may read."""
    return (*star.schema, *((view.name, view.facts) for view in views))


@lru_cache(maxsize=4_096)  # The small scopes ask one text of many tables.
def planned_on(sql: str, schema: Schema) -> Plan | SkipReason:
    """What the rewriter plans, once it knows all the tables that it asks for."""
    statement = parse(sql, chars_max=_CHARS_MAX, has_views=True)
    if isinstance(statement, SkipReason):
        return statement
    known: dict[TableName, TableFacts | None] = {}
    while (planned := plan(statement, known, LIMITS)).missing:
        known |= catalog(schema, planned.missing)
    return _with_sizes(planned)


def with_lists(planned: Plan, answers: Answers, star: Star, rng: Random) -> Plan:
    """The plan with the lists of partitions that it wants, each without some that came after it was read."""
    wanted = planned.wants_lists(answers)
    if not wanted:
        return planned
    lists = {name: partition_index(star.table(name.parts[-1].lower()), rng) for name in wanted}
    return _with_sizes(plan(planned.statement, planned.catalog, LIMITS, {**planned.partitions, **lists}))


def _with_sizes(planned: Plan) -> Plan:
    """The plan once each part of a partitioned table that it wants the size of has a small one."""
    known = dict(planned.catalog)
    for part in planned.unsized_parts:
        facts = known[part.table]
        assert facts is not None
        known[part.table] = replace(facts, part_sizes=(*facts.part_sizes, (part.text, 1)))
    return plan(planned.statement, known, LIMITS, planned.partitions) if planned.unsized_parts else planned


def partition_index(table: Table, rng: Random) -> PartitionIndex | None:
    """The partitions of a table, most of them; None where they are of a type without a certain order."""
    places = [index for index, column in enumerate(table.columns) if column.name in table.partition_columns]
    types = [table.columns[index].type_name for index in places]
    rows = {tuple(row[index] for index in places) for row in table.rows}
    specs = [
        "/".join(f"{name}={_spec_value(value)}" for name, value in zip(table.partition_columns, row, strict=True))
        for row in sorted(rows, key=repr)
        if rng.random() < _LISTED
    ]
    try:
        return PartitionIndex.of(table.partition_columns, types, specs)
    except NotIndexableError:
        return None


def _spec_value(value: object) -> str:
    """A value as the name of a partition has it."""
    if value is None:
        return DEFAULT_PARTITION
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(c if c.isalnum() or c in "-._" or ord(c) > 127 else f"%{ord(c):02X}" for c in text)


def _variants(planned: Plan, answers: Answers, rng: Random) -> dict[str, str]:
    """Texts that must answer the same: without one of the key sets, and with one of them grown."""
    texts: dict[str, str] = {}
    known = [key_query for key_query, answer in answers.items() if isinstance(answer, KeySet)]
    if len(known) > 1:
        left_out = rng.choice(known)
        rest: Answers = {k: a for k, a in answers.items() if k != left_out}
        texts[f"rewritten without the keys of {left_out.sql}"] = apply(planned, rest, LIMITS).text
    for key_query, assumed in answers.items():
        if isinstance(assumed, KeySet) and assumed.assumptions:
            # Keys of another day must lose nothing: what they rest on does not hold in this statement.
            other = tuple((function, _OTHER[literal[:5] == "DATE'"]) for function, literal in assumed.assumptions)
            never = {**answers, key_query: replace(assumed, rows=(), assumptions=other)}
            texts[f"rewritten with other assumptions for {key_query.sql}"] = apply(planned, never, LIMITS).text
    if known:
        grown = rng.choice(known)
        keys = answers[grown]
        assert isinstance(keys, KeySet)
        more = tuple(_on_the_wire(rng.choice(VALUES[column.type_name])) for column in grown.columns)
        every = (True,) * len(more)
        wider = replace(keys, rows=KeySet.of(keys.type_names, [*keys.rows, more], null_safe=every).rows)
        texts[f"rewritten with more keys for {grown.sql}"] = apply(planned, {**answers, grown: wider}, LIMITS).text
    for key_query, matches in answers.items():
        if isinstance(matches, PartitionMatches):
            fewer = frozenset(row for row in matches.asked if row in matches.matching or rng.random() < _LISTED)
            less: Answers = {**answers, key_query: replace(matches, asked=fewer)}
            texts[f"rewritten with fewer partitions for {key_query.sql}"] = apply(planned, less, LIMITS).text
    texts |= _tight_variants(planned, answers, rng)
    return texts


def _tight_variants(planned: Plan, answers: Answers, rng: Random) -> dict[str, str]:
    """The same where next to nothing may be said: covers are widened, and the keys are said again or not."""
    points, ranges = rng.choice([(0, 1), (1, 0), (1, 1), (2, 2)])
    texts = {}
    for chars_max in (LIMITS.predicate_chars_max, 150):
        limits = RewriteLimits(metastore=Consumer(points, ranges), predicate_chars_max=chars_max)
        about = f"with {points} points, {ranges} ranges, {chars_max} characters"
        texts[f"rewritten {about}"] = apply(planned, answers, limits).text
        hulls = {question: _hull(answer) for question, answer in answers.items()}
        texts[f"rewritten by ranges {about}"] = apply(planned, hulls, limits).text
    return texts


def _hull(answer: Keys | SkipReason) -> Keys | SkipReason:
    """One range around all keys of a column, as for keys that are too many."""
    if not isinstance(answer, KeySet) or len(answer.type_names) > 1 or not answer.rows:
        return answer
    keys = [row[0] for row in answer.rows if row[0] is not None]
    ends = ((keys[0], keys[-1]),) if keys else ()
    return KeyRanges(answer.type_names[0], ends, answer.has_null, answer.assumptions)


def _differences(sieve: Sieve, query: Query, expected: Answer, what: str, text: str) -> Iterator[str]:
    try:
        found = sieve.answer(text, query)
    except NoVerdictError:
        raise
    except NotRunError as error:
        yield f"original:  {query.sql}\n{what}: {text}\nfails: {error}"
        return
    if found != expected:
        yield report(query.sql, what, text, expected, found)


def report(sql: str, what: str, text: str, expected: Answer, found: Answer) -> str:
    """A wrong answer in full."""
    missing, added = expected - found, found - expected
    return (
        f"original:  {sql}\n{what}: {text}\n"
        f"answers of the original:  {sorted(expected.elements())}\n"
        f"answers of the rewritten: {sorted(found.elements())}\n"
        f"missing: {sorted(missing.elements())}\nadded:   {sorted(added.elements())}"
    )


def _random_keys(sieve: Sieve, planned: Plan, answers: Answers) -> Iterator[str]:
    """A key query that answers differently each time cannot cover what the statement will see."""
    for _ in range(3):
        for key_query in planned.key_queries:
            again = sieve.keys(key_query)
            if again != answers[key_query]:
                yield (
                    f"original:  {planned.statement.text}\nkey query: {key_query.sql}\n"
                    f"answers: {answers[key_query]}, then {again}"
                )
                return


def _on_the_wire(value: object) -> Key | None:
    """A value as HiveServer2 hands it over: dates and decimals as text."""
    return value if value is None or isinstance(value, int | str) else str(value)


def _comparable(value: object) -> str:
    """A value as text; -0.0 is 0.0, since which of two equal values is shown is not promised."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    return repr(value)


def _first_line(error: Exception) -> str:
    # Without the names and numbers, so that alike errors count together.
    line = str(error).strip().splitlines()[0] if str(error).strip() else ""
    return f"{type(error).__name__}: {line[:80]}"
