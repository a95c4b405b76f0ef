"""Shadow comparisons on the real server: what is equal, what is our fault, and what nobody can tell."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.query import Query, QueryResult
from proxy.session.decider import Decider
from proxy.session.decision import DecisionTerms
from proxy.session.session_settings import SessionSettings
from proxy.session.shadow.compare import Comparison, Pair, ShadowLimits, ShadowVerdict, compare
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.upstream.client import BackendClient

DATABASE = "shadow"
# A busy machine makes a comparison slow, and no test here is about time.
LIMITS = ShadowLimits(statement_s=120.0, total_s=600.0)
PATIENT = Config(
    rewrite=RewriteSection(key_query_deadline_s=120.0), catalog=CatalogSection(query_deadline_s=120.0)
)

TABLES = (
    """CREATE TABLE fact USING parquet PARTITIONED BY (day) AS
SELECT id, CAST(id % 7 AS DECIMAL(9, 2)) AS price, rand(1) * 1e6 AS weight, map('k', id) AS tags,
  array(id, id + 1) AS pair, named_struct('a', id, 'b', CAST(id AS STRING)) AS both,
  concat('d', id DIV 100) AS day
FROM range(0, 2000, 1, 1)""",
    """CREATE TABLE days USING parquet AS
SELECT concat('d', id) AS day, id % 4 AS quarter FROM range(20)""",
)

JOIN = "FROM fact f JOIN days d ON f.day = d.day WHERE d.quarter = 2"
# One of the five keys of the quarter.
LOST = "'d6'"


@pytest.fixture(scope="module")
def tables(spark: ThriftServer) -> Iterator[None]:
    with closing(connect(spark.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        run(connection, f"USE {DATABASE}")
        for statement in TABLES:
            run(connection, statement)
        yield
        run(connection, f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture
async def client(spark: ThriftServer, tables: None) -> AsyncIterator[BackendClient]:  # noqa: ARG001
    endpoint = spark.endpoint
    async with BackendClient.connect(endpoint.host, endpoint.port, "demo", "demo", DATABASE) as opened:
        await ask(opened, "SET spark.sql.shuffle.partitions=1")
        yield opened


async def ask(client: BackendClient, sql: str) -> QueryResult:
    return await client.answer(Query(sql, rows_max=100, bytes_max=1024 * 1024, deadline_s=120.0))


async def rewritten(client: BackendClient, sql: str) -> Pair:
    terms = DecisionTerms(SessionSettings.configured(PATIENT, {}), scope="", owner="")
    decision = await client.drive(lambda: Decider(SharedState.of(PATIENT)).decide(StatementClass(sql), terms))
    assert decision.rewrite is not None
    pair = Pair.of(sql, decision.rewrite)
    assert pair.rewritten != sql, decision.rewrite.scans
    assert pair.keys
    return pair


async def compared(client: BackendClient, pair: Pair) -> Comparison:
    return await client.drive(lambda: compare(pair, LIMITS, time.monotonic))


def broken(pair: Pair) -> Pair:
    """The pair with a key missing, as a defect of ours would leave it out."""
    assert LOST in pair.rewritten
    return Pair(pair.original, pair.rewritten.replace(LOST, "'none'"), pair.keys)


STATEMENTS = {
    "rows": f"SELECT f.id, f.price, f.day, f.id {JOIN}",
    "groups": f"SELECT d.day, sum(f.price), count(*) {JOIN} GROUP BY d.day",
    "one row": f"SELECT sum(f.price), min(f.id) {JOIN}",
    "doubles": f"SELECT sum(f.weight), avg(f.weight), stddev(f.weight), CAST(sum(f.weight) AS FLOAT) {JOIN}",
    "complex types": f"SELECT f.pair, f.both, array(f.weight), f.tags, NULL AS nothing {JOIN}",
    "only a map": f"SELECT f.tags {JOIN}",
    "LIMIT with ties": f"SELECT f.price, f.id {JOIN} ORDER BY f.price LIMIT 10 OFFSET 3;",
}
UNUSUAL_TEXTS = {
    "no rows": f"SELECT f.id, f.weight {JOIN} AND f.id < 0",
    "a semicolon and comments": f"-- first\nSELECT /* all */ f.id {JOIN} -- last\n ; ",
    "ORDER BY and a comment": f"SELECT f.id {JOIN} ORDER BY f.id DESC -- last",
    "CTE": f"WITH wanted AS (SELECT f.id, f.price {JOIN}) SELECT price, count(*) FROM wanted GROUP BY price",
    "UNION": f"SELECT f.id {JOIN} UNION ALL SELECT -1",
    "in parentheses": f"(SELECT f.id {JOIN})",
    "FROM first": f"{JOIN.replace(' WHERE', ' SELECT f.id WHERE')}",
}


@pytest.mark.parametrize("sql", [*STATEMENTS.values(), *UNUSUAL_TEXTS.values()], ids=[*STATEMENTS, *UNUSUAL_TEXTS])
async def test_a_sound_rewrite_is_equal(client: BackendClient, sql: str) -> None:
    comparison = await compared(client, await rewritten(client, sql))
    assert comparison.verdict is ShadowVerdict.EQUAL, comparison


@pytest.mark.parametrize("name", ["groups", "doubles", "complex types", "LIMIT with ties"])
async def test_a_missing_key_is_different(client: BackendClient, name: str) -> None:
    comparison = await compared(client, broken(await rewritten(client, STATEMENTS[name])))
    assert comparison.verdict is ShadowVerdict.DIFFERENT, comparison
    assert comparison.blames_us


async def test_a_missing_key_is_seen_where_only_few_doubles_of_many_tell(client: BackendClient) -> None:
    # One row of 500, in a column that is never the same to the last digit.
    pair = Pair(f"SELECT sum(f.weight) {JOIN}", f"SELECT sum(f.weight) {JOIN} AND f.id <> 601")
    assert (await compared(client, pair)).verdict is ShadowVerdict.DIFFERENT


async def test_doubles_that_were_added_in_another_order_are_equal_each_time(client: BackendClient) -> None:
    statement = "SELECT f.id % 3, sum(f.weight), avg(f.weight), variance(f.weight) FROM {} GROUP BY f.id % 3"
    pair = Pair(statement.format("fact f"), statement.format("(SELECT /*+ REPARTITION(5) */ * FROM fact) f"))
    for _ in range(3):
        comparison = await compared(client, pair)
        assert comparison.verdict is ShadowVerdict.EQUAL, comparison


NOT_OUR_FAULT = {
    "chance": (f"SELECT f.id, rand() AS luck {JOIN}", "changed"),
    "rows that an inner LIMIT chose": (f"SELECT id FROM (SELECT f.id {JOIN} LIMIT 450)", "chosen"),
    "rows that a window numbered": (f"SELECT f.id, row_number() OVER (ORDER BY f.price) {JOIN}", "chosen"),
    "the first of a group, in a view": (f"SELECT f.id, f.one {JOIN.replace('fact', 'firsts')}", "chosen"),
}


@pytest.mark.parametrize(("sql", "why"), NOT_OUR_FAULT.values(), ids=NOT_OUR_FAULT)
async def test_a_difference_that_may_have_another_reason_is_not_blamed(
    client: BackendClient, sql: str, why: str
) -> None:
    view = (
        "CREATE OR REPLACE TEMPORARY VIEW firsts AS SELECT id, day, first(price) AS one FROM fact GROUP BY id, day"
    )
    await ask(client, view)
    comparison = await compared(
        client, Pair(sql, sql.replace("d.quarter = 2", f"d.quarter = 2 AND f.day <> {LOST}"))
    )
    assert comparison.verdict is ShadowVerdict.UNSTABLE, comparison
    assert why in comparison.why


async def test_a_cent_that_was_rounded_to_the_other_side_is_not_blamed(client: BackendClient) -> None:
    pair = Pair("SELECT round(4.505D, 2)", "SELECT round(4.504999999D, 2)")
    comparison = await compared(client, pair)
    assert comparison.verdict is ShadowVerdict.UNSTABLE, comparison
    assert "rounded" in comparison.why


async def test_a_small_side_that_was_written_meanwhile_is_no_difference(client: BackendClient) -> None:
    await ask(client, "CREATE TABLE lately USING parquet AS SELECT * FROM days")
    pair = await rewritten(client, f"SELECT f.id {JOIN.replace('days', 'lately')}")
    await ask(client, "INSERT INTO lately VALUES ('d7', 2)")
    comparison = await compared(client, pair)
    assert comparison.verdict is ShadowVerdict.UNSTABLE, comparison
    assert "keys" in comparison.why


async def test_a_rewritten_text_that_fails_is_blamed_and_an_original_that_fails_is_not(
    client: BackendClient,
) -> None:
    fine, failing = "SELECT 1 AS one", "SELECT CAST(raise_error('secret') AS INT) AS one"
    assert (await compared(client, Pair(fine, failing))).verdict is ShadowVerdict.FAILED
    comparison = await compared(client, Pair(failing, fine))
    assert comparison.verdict is ShadowVerdict.UNCOMPARABLE
    assert "secret" not in comparison.why


async def test_a_statement_that_takes_too_long_is_not_compared(client: BackendClient) -> None:
    slow = "SELECT reflect('java.lang.Thread', 'sleep', 20000L + id) FROM range(2)"
    limits = ShadowLimits(statement_s=1.0, total_s=60.0)
    comparison = await client.drive(lambda: compare(Pair(slow, slow), limits, time.monotonic))
    assert comparison.verdict is ShadowVerdict.UNCOMPARABLE
    assert "deadline" in comparison.why
