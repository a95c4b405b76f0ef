"""The corpus on the real server, directly and through the proxy: same answers, and as much narrowed as recorded.

`pytest tests/reach --update-reach` records what is narrowed now.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from pyhive import hive
from reach_catalog import described, record, recorded
from reach_corpus import DATABASE, DIRECT, PROXIED, ReachStatement, statements, table_statements
from reach_expectations import Expectation, expectations, write
from reach_explained import Explained, explained
from spark_plans import pruned_by_spark
from support.metrics_of_proxy import recovered_count
from support.profile import DEEP

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

ROWS_SHOWN_MAX = 10

Answer = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Corpus:
    """A direct and a proxied session in the database of the corpus, and the outcomes of this run."""

    direct: hive.Connection
    proxied: hive.Connection
    proxy: ProxyProcess
    # The first two numbers of the server's version.
    spark: tuple[int, ...]
    found: dict[str, Expectation]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


@pytest.fixture(scope="module")
def updating_reach(request: pytest.FixtureRequest) -> bool:
    """True if the expectations are recorded anew."""
    return bool(request.config.getoption("--update-reach"))


@pytest.fixture(scope="module")
def corpus(spark: ThriftServer, proxy: ProxyProcess, *, updating_reach: bool) -> Iterator[Corpus]:
    with closing(connect(spark.endpoint)) as maker:
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *table_statements()):
            run(maker, statement)
    with (
        closing(connect(spark.endpoint, database=DATABASE)) as direct,
        closing(connect(proxy.endpoint, database=DATABASE)) as proxied,
    ):
        ((version,),) = run(direct, "SELECT version()")
        made = Corpus(direct, proxied, proxy, _numbers(version), {})
        yield made
    if updating_reach:
        write(made.found)


def test_the_tables_are_what_the_pure_cases_take_them_for(corpus: Corpus, *, updating_reach: bool) -> None:
    if corpus.spark < (4, 3):
        pytest.skip("the record is of another Spark: older ones than 4.3 write files of other sizes")
    found = described(corpus.direct)
    if updating_reach:
        record(found)
    assert found == recorded()


@pytest.mark.parametrize("statement", statements(), ids=str)
def test_a_statement_answers_as_it_does_directly_and_is_narrowed_as_recorded(
    statement: ReachStatement, corpus: Corpus, *, updating_reach: bool
) -> None:
    if corpus.spark < _numbers(statement.since):
        pytest.skip(f"another Spark reads it: one since {statement.since}")
    assert_same_answer(statement, corpus)
    found = explained(corpus.proxy, corpus.proxied, statement, PROXIED)
    if updating_reach:
        corpus.found[str(statement)] = expectation(statement, found, pruned_by_spark(corpus.direct, statement))
    else:
        assert found.narrowed(statement.narrowable) >= expectations()[str(statement)].narrowed, found


@pytest.mark.skipif(not DEEP, reason="plans are Spark's own, and change with Spark alone: STARPRUNER_DEEP=1")
def test_spark_prunes_what_the_page_says(corpus: Corpus) -> None:
    known = expectations()
    pruned = {str(one): pruned_by_spark(corpus.direct, one) for one in statements()}
    assert pruned == {name: known[name].pruned_by_spark for name in pruned}


def expectation(statement: ReachStatement, found: Explained, pruned: int) -> Expectation:
    narrowable = statement.narrowable
    return Expectation(statement.kinds, narrowable, found.narrowed(narrowable), pruned, found.left(narrowable))


def assert_same_answer(statement: ReachStatement, corpus: Corpus) -> None:
    before = recovered_count(corpus.proxy)
    direct = answer(statement, corpus.direct, corpus.direct, DIRECT)
    proxied = answer(statement, corpus.proxied, corpus.direct, PROXIED)
    assert proxied == direct, difference(statement, direct, proxied)
    assert recovered_count(corpus.proxy) == before, "what was rewritten failed, and was run again as it came"


def answer(statement: ReachStatement, session: hive.Connection, direct: hive.Connection, target: str) -> Answer:
    """The rows of the statement, or of the table that it wrote."""
    if statement.writes:
        run(direct, f"DROP TABLE IF EXISTS {target}")
    for prepared in statement.setup_of(target):
        run(session, prepared)
    rows = run(session, statement.sql(target))
    if statement.writes:
        run(direct, f"REFRESH TABLE {target}")
        rows = run(direct, f"SELECT * FROM {target}")
    return Counter(tuple(map(repr, row)) for row in rows)


def difference(statement: ReachStatement, direct: Answer, proxied: Answer) -> str:
    missing, added = (list(rows.elements())[:ROWS_SHOWN_MAX] for rows in (direct - proxied, proxied - direct))
    return f"{statement.text}\nonly direct:  {missing}\nonly proxied: {added}"
