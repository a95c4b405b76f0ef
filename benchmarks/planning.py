"""Cost of planning: per phase on the 99 TPC-DS texts, with nothing to narrow, left alone, and as statements grow.

`make bench` runs it. Times are CPU time, which a busy machine does not stretch.
"""

import platform
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import log
from pathlib import Path
from time import process_time
from typing import TypeAlias, TypeVar

import click
import sqlglot.parser
from growing import CATALOG, SERIES
from reports import json_option, write_json
from rich.console import Console
from rich.table import Table
from tpcds import tpcds

from proxy.config.config import Config
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.decider import Decider
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.cost_gate import Run, StatementKey, Way
from proxy.session.session_settings import SessionSettings
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from rewriter import (
    Catalog,
    KeyQuery,
    KeySet,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.fingerprint import fingerprint

T = TypeVar("T")

LIMITS = RewriteLimits()
# Above the largest statement here: a statement that is refused for its length costs nothing.
_STATEMENT_CHARS_MAX = 10_000_000
# Keys for each key query, as many as a filter on a date dimension gives.
_KEYS = 100
_PHASES = ("tokenize", "parse", "plan", "apply")
_STRING = re.compile(r"'([^'\n]*)'")


@dataclass(frozen=True)
class Cost:
    """Milliseconds for each phase of one statement; `outcome` is a skip reason's code or how much is narrowed."""

    tokenize: float
    parse: float
    plan: float
    apply: float
    outcome: str


@dataclass(frozen=True)
class Grown:
    """A statement's cost at one size, and the power of the size that it grew with since the size before."""

    series: str
    size: int
    chars: int
    cost: Cost
    exponent: float | None


Summary: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Report:
    """All measurements: by phase over the TPC-DS texts, and as statements grow."""

    python: str
    sqlglot: str
    compiled: bool
    queries: int
    tpcds: Summary
    nothing_to_do: Summary
    # Of whole decisions about statements that the cost gate leaves alone.
    left_alone: Summary
    growth: list[Grown]


def cost(sql: str, catalog: Catalog) -> Cost:
    """The cost of one rewrite, each phase once."""
    _, tokenized = _timed(lambda: tokenize(sql))
    statement, parsed = _timed(lambda: parse(sql, chars_max=_STATEMENT_CHARS_MAX))
    # `parse` tokenizes too.
    parsed = max(0.0, parsed - tokenized)
    if isinstance(statement, SkipReason):
        return Cost(tokenized, parsed, 0.0, 0.0, statement.name)
    found, planned = _timed(lambda: plan(statement, catalog, LIMITS))
    answers = {asked: _keys(asked) for asked in found.key_queries}
    rewrite, applied = _timed(lambda: apply(found, answers, LIMITS))
    narrowed = sum(scan.predicate is not None for scan in rewrite.scans)
    return Cost(tokenized, parsed, planned, applied, rewrite.skip.name if rewrite.skip else f"{narrowed} narrowed")


def _timed(phase: Callable[[], T]) -> tuple[T, float]:
    start = process_time()
    result = phase()
    return result, (process_time() - start) * 1_000


def _keys(asked: KeyQuery) -> KeySet:
    type_names = tuple(column.type_name for column in asked.columns)
    rows = [tuple(n if name.endswith("int") else str(n) for name in type_names) for n in range(_KEYS)]
    return KeySet.of(type_names, rows)


def typical_cost(sql: str, catalog: Catalog, runs: int) -> Cost:
    """The median of each phase over several runs."""
    costs = [cost(sql, catalog) for _ in range(runs)]
    medians = {phase: statistics.median(getattr(one, phase) for one in costs) for phase in _PHASES}
    return Cost(**medians, outcome=costs[0].outcome)


def summary(costs: Sequence[Cost]) -> Summary:
    """Median, 99th percentile and maximum of each phase over the statements."""
    found = {}
    for phase in _PHASES:
        found[phase] = _spread([getattr(cost, phase) for cost in costs])
    return found


def _spread(unordered: Sequence[float]) -> Mapping[str, float]:
    times = sorted(unordered)
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    return {"median": statistics.median(times), "p99": p99, "max": times[-1]}


def left_alone(texts: Sequence[str], runs: int) -> Summary:
    """Milliseconds to decide that a statement is left alone for the cost gate's sake, without any query."""
    shared = SharedState.of(Config())
    decider = Decider(shared)
    terms = DecisionTerms(SessionSettings.configured(shared.config, {}), "bench", "bench")
    times: dict[str, list[float]] = {"same text": [], "other constants": []}
    for sql in texts:
        statement = parse(sql, chars_max=_STATEMENT_CHARS_MAX)
        if isinstance(statement, SkipReason):
            continue
        key = StatementKey(terms.scope, fingerprint(statement), terms.owner)
        shared.known_texts.parsed(sql, key.fingerprint)
        shared.gate.ended(Run(key, Way.ORIGINAL, decider.listings), Outcome(OutcomeKind.FINISHED, seconds=0.0))
        others = (_STRING.sub(rf"'\g<1>{run}'", sql) for run in range(runs))
        for kind, sent in {"same text": [sql] * runs, "other constants": others}.items():
            decided = (_timed(partial(_decided, decider, text, terms))[1] for text in sent)
            times[kind].append(statistics.median(decided))
    return {kind: _spread(found) for kind, found in times.items()}


def _decided(decider: Decider, sql: str, terms: DecisionTerms) -> Decision:
    try:
        asked = decider.decide(StatementClass(sql), terms).send(None)
    except StopIteration as end:
        decision: Decision = end.value
        return decision
    raise AssertionError(asked.sql)


def growth(largest: int, runs: int) -> list[Grown]:
    """Every series, up to the largest size."""
    found: list[Grown] = []
    for series in SERIES:
        before: tuple[int, float] | None = None
        for size, sql in series.statements(largest):
            measured = typical_cost(sql, CATALOG, runs)
            total = measured.plan + measured.apply
            exponent = log(total / before[1]) / log(size / before[0]) if before and before[1] and total else None
            found.append(Grown(series.name, size, len(sql), measured, exponent))
            before = size, total
    return found


def unpartitioned(tables: Mapping[TableName, TableFacts | None]) -> Catalog:
    """The same tables without their partitions: nothing can be narrowed."""
    return {name: facts and TableFacts(facts.columns) for name, facts in tables.items()}


def measured(queries_max: int, largest: int, runs: int) -> Report:
    """Make all measurements."""
    benchmark = tpcds(scale=0)
    texts = list(benchmark.queries.values())[:queries_max]
    catalogs = [benchmark.catalog(_tables(sql)) for sql in texts]
    pairs = list(zip(texts, catalogs, strict=True))
    return Report(
        python=platform.python_version(),
        sqlglot=version("sqlglot"),
        compiled=not str(sqlglot.parser.__file__).endswith(".py"),
        queries=len(texts),
        tpcds=summary([typical_cost(sql, catalog, runs) for sql, catalog in pairs]),
        nothing_to_do=summary([typical_cost(sql, unpartitioned(catalog), runs) for sql, catalog in pairs]),
        left_alone=left_alone(texts, runs),
        growth=growth(largest, runs),
    )


def _tables(sql: str) -> frozenset[TableName]:
    statement = parse(sql, chars_max=_STATEMENT_CHARS_MAX)
    return frozenset() if isinstance(statement, SkipReason) else plan(statement, {}, LIMITS).missing


def show(console: Console, report: Report) -> None:
    """The report as two tables."""
    how = "compiled" if report.compiled else "pure Python"
    console.print(f"sqlglot {report.sqlglot}, {how}; Python {report.python}; all times in milliseconds")
    console.print(_phase_table(report))
    console.print(_growth_table(report))


def _phase_table(report: Report) -> Table:
    table = Table("statements", "phase", "median", "p99", "max")
    titles = {
        f"TPC-DS, {report.queries} texts, facts partitioned": report.tpcds,
        "the same, nothing partitioned: nothing to do": report.nothing_to_do,
        "the same, left alone by the cost gate": report.left_alone,
    }
    for title, phases in titles.items():
        for phase, times in phases.items():
            shown = (f"{times[name]:.2f}" for name in ("median", "p99", "max"))
            table.add_row(title if phase == next(iter(phases)) else "", phase, *shown)
    return table


def _growth_table(report: Report) -> Table:
    table = Table("statement", "size", "chars", *_PHASES, "outcome", "plan and apply grow with size to the")
    for grown in report.growth:
        times = (f"{getattr(grown.cost, phase):.2f}" for phase in _PHASES)
        exponent = "" if grown.exponent is None else f"{grown.exponent:.1f}"
        table.add_row(grown.series, f"{grown.size:,}", f"{grown.chars:,}", *times, grown.cost.outcome, exponent)
    return table


@click.command()
@json_option
@click.option("--queries", default=99, show_default=True, help="TPC-DS texts to measure.")
@click.option(
    "--largest", default=100_000, show_default=True, help="The largest size of the statements that grow."
)
@click.option("--runs", default=5, show_default=True, help="Runs of each statement, of which the median counts.")
def main(json_path: Path | None, queries: int, largest: int, runs: int) -> None:
    """Measure the cost of planning."""
    report = measured(queries, largest, runs)
    show(Console(), report)
    write_json(json_path, report)


if __name__ == "__main__":
    main()
