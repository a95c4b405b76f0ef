"""The benchmarks' queries on the real server: the proxy narrows what was planned, and answers as Spark does alone.

A handful runs every time, all of them with STARPRUNER_DEEP=1.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from answers import same_rows
from known_benchmarks import benchmark
from narrowing import fact_scans, narrowed_tables, statement_of
from pyhive import hive
from spark_tables import load
from sqlglot import exp
from ssb import QUERIES
from star_benchmark import StarBenchmark
from support.explain_requests import explanation_of
from support.profile import DEEP

from demo.hive import Row, connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

# Three blocks of an INTERSECT, unions below a join, a plain join. All find rows, and together they need few of the
# tables, whose loading takes longer than the queries.
QUICK = {"tpcds_coarse": ("q38", "q71", "q98"), "ssb": ("q1.2",)}
ALL = {"tpcds": tuple(f"q{number}" for number in range(1, 100)), "ssb": tuple(QUERIES)}
CHOSEN = ALL if DEEP else QUICK
CASES = [(name, query) for name, queries in CHOSEN.items() for query in queries]
EXPLAIN_SECONDS_MAX = 60
ROWS_SHOWN_MAX = 10  # Some answers hold thousands.

# A scan in EXPLAIN FORMATTED: its table, and the lines that say how it is pruned.
SPARK_SCAN = re.compile(r"^\(\d+\) Scan parquet \S+\.(\w+)$(.*?)^$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Sessions:
    """A direct and a proxied session in the database of a benchmark's tables."""

    direct: hive.Connection
    proxied: hive.Connection


@pytest.fixture(scope="session")
def sessions(
    spark: ThriftServer, proxy: ProxyProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Sessions]]:
    """The sessions of a benchmark by its name; its tables are loaded when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def opened(name: str) -> Sessions:
            direct = stack.enter_context(closing(connect(spark.endpoint)))
            load_database(name, direct, tmp_path_factory.mktemp(name))
            proxied = stack.enter_context(closing(connect(proxy.endpoint, database=name)))
            return Sessions(direct, proxied)

        yield opened


def load_database(name: str, session: hive.Connection, directory: Path) -> None:
    """Make the tables that the chosen queries read, in a database that the session then stays in."""
    run(session, f"CREATE DATABASE {name}")
    run(session, f"USE {name}")
    made = benchmark(name)
    load(made, session, directory, tables_of(made, CHOSEN[name]))


def tables_of(made: StarBenchmark, queries: Sequence[str]) -> list[str]:
    """The tables that the queries read."""
    trees = [statement_of(made.queries[query]).tree for query in queries]
    named = {table.name.lower() for tree in trees for table in tree.find_all(exp.Table)}
    return sorted(named & made.tables.keys())


@pytest.mark.parametrize(("name", "query"), CASES)
def test_a_query_is_narrowed_as_planned_and_answers_as_it_does_directly(
    name: str, query: str, sessions: Callable[[str], Sessions], proxy: ProxyProcess
) -> None:
    made, opened = benchmark(name), sessions(name)
    assert narrowed_by_the_proxy(proxy, name, query) == narrowed_tables(fact_scans(made, query))
    sql = made.unlimited(query)
    direct, proxied = run(opened.direct, sql), run(opened.proxied, sql)
    assert same_rows(direct, proxied), difference(sql, direct, proxied)


def difference(sql: str, direct: list[Row], proxied: list[Row]) -> str:
    """The statement, and the first rows of each answer that the other does not hold."""
    one, other = Counter(map(repr, direct)), Counter(map(repr, proxied))
    missing, added = (list(rows.elements())[:ROWS_SHOWN_MAX] for rows in (one - other, other - one))
    return f"{sql}\nonly direct:  {missing}\nonly proxied: {added}"


def narrowed_by_the_proxy(proxy: ProxyProcess, name: str, query: str) -> Counter[str]:
    asked = {"sql": benchmark(name).queries[query], "database": name}
    scans = explanation_of(proxy.admin_url, seconds_max=EXPLAIN_SECONDS_MAX, **asked)["scans"]
    # A CTE with several readers is narrowed where it is named; here the facts count.
    facts = benchmark(name).partitions
    narrowed = (scan["table"].lower() for scan in scans if scan["predicate"] is not None)
    return Counter(table for table in narrowed if table in facts)


@pytest.mark.parametrize(("name", "query"), CASES)
def test_what_spark_prunes_at_run_time_is_narrowed_before(
    name: str, query: str, sessions: Callable[[str], Sessions]
) -> None:
    made = benchmark(name)
    narrowed = narrowed_tables(fact_scans(made, query)).keys()
    pruned = pruned_by_spark(sessions(name).direct, made.queries[query])
    assert not pruned - narrowed


def pruned_by_spark(session: hive.Connection, sql: str) -> set[str]:
    """The tables of which Spark's own plan prunes a scan by what it joins: an opinion that is not ours."""
    text = "\n".join(str(line) for (line,) in run(session, f"EXPLAIN FORMATTED {sql}"))
    return {str(table) for table, described in SPARK_SCAN.findall(text) if "dynamicpruning" in described}
