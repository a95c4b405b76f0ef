"""What becomes of each fact scan of a benchmark's queries, without Spark: DuckDB answers the key queries."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp, parse_one
from star_benchmark import StarBenchmark

from rewriter import (
    KeyQuery,
    Keys,
    Plan,
    RewriteLimits,
    ScanOutcome,
    SkipReason,
    Statement,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.pruning import kept_count, partition_costs

LIMITS = RewriteLimits()
STATEMENT_CHARS_MAX = 100_000  # The longest of the texts has under 10,000.


@dataclass(frozen=True)
class FactScan:
    """A reference to a fact: how many of its partitions are kept, or why all are."""

    table: str
    kept: int | None
    total: int
    reason: SkipReason | None


def statement_of(sql: str) -> Statement:
    """The parsed text of a query that the rewriter does read."""
    statement = parse(sql, chars_max=STATEMENT_CHARS_MAX)
    assert isinstance(statement, Statement), f"{statement}: {sql}"
    return statement


def planned(benchmark: StarBenchmark, statement: Statement) -> Plan:
    """The plan, by the facts of the benchmark's tables."""
    missing = plan(statement, {}, LIMITS).missing
    return plan(statement, benchmark.catalog(missing), LIMITS)


def fact_scans(benchmark: StarBenchmark, query: str) -> list[FactScan]:
    """The query's references to facts, in the order of the text."""
    found = planned(benchmark, statement_of(benchmark.queries[query]))
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    while pending := found.pending(answers):
        answers |= {asked: answer(benchmark, asked) for asked in pending}
    partitions = {name: partition_costs(_index(benchmark, name)) for name in found.wants_partitions(answers)}
    rewrite = apply(found, answers, LIMITS, partitions)
    outcomes = sorted(rewrite.scans, key=lambda outcome: outcome.scan.reference.start)
    return [_fact_scan(benchmark, outcome) for outcome in outcomes if _table(outcome) in benchmark.partitions]


def narrowed_tables(scans: Iterable[FactScan]) -> Counter[str]:
    """How many scans of each fact are narrowed."""
    return Counter(scan.table for scan in scans if scan.reason is None)


def _table(outcome: ScanOutcome) -> str:
    return outcome.scan.reference.name.parts[-1].lower()


def _fact_scan(benchmark: StarBenchmark, outcome: ScanOutcome) -> FactScan:
    total = len(benchmark.partitions[_table(outcome)])
    if outcome.cover is None:
        return FactScan(_table(outcome), None, total, outcome.skip)
    exact = [keys.cover(columns) for columns, keys in outcome.narrowed_by]
    index = _index(benchmark, outcome.scan.reference.name)
    return FactScan(_table(outcome), kept_count(index, exact if outcome.exact else [outcome.cover]), total, None)


def _index(benchmark: StarBenchmark, name: TableName) -> PartitionIndex:
    table = name.parts[-1].lower()
    column, facts = benchmark.partition_columns[table], benchmark.catalog(frozenset({name}))[name]
    known = facts.column(column) if facts is not None else None
    assert known is not None
    return PartitionIndex.of((known.name,), (known.type_name,), benchmark.partitions[table])


def answer(benchmark: StarBenchmark, asked: KeyQuery) -> Keys | SkipReason:
    """The keys, as DuckDB finds them in the same data."""
    tree = parse_one(asked.sql, read="spark")
    for node in list(tree.find_all(exp.Typeof)):
        # DuckDB has names of its own for the types, and a benchmark's tables do not change theirs.
        _ = node.replace(exp.Literal.string(asked.columns[0].type_name))
    rows = benchmark.connection.execute(tree.sql("duckdb")).fetchall()
    return asked.read(rows)
