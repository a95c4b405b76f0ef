"""The same generator on the real server: a session through the real proxy answers as a direct one does."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest
from grammar import TARGET, Query, random_query, random_view_query
from grammar_sources import HERE
from pyhive import hive
from seeding import how_to_run, seeded, seeds
from sieve import planned_on, report, schema_of
from star_tables import Star, random_star
from support.explain_requests import explanation_of
from support.metrics_of_proxy import recovered_count
from support.profile import DEEP

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer
from rewriter import SkipReason

SEEDS = seeds(quick=2, deep=100)
STATEMENTS_PER_SEED = 20 if DEEP else 12
# Most statements are worth the server's time only if they will be narrowed; the others must still pass.
LEFT_ALONE_EVERY = 5

Answer = Counter[tuple[str, ...]]
MakeQuery = Callable[[Star, int, int], Query]


@dataclass(frozen=True)
class Sessions:
    """Two sessions in one database of random tables."""

    star: Star
    database: str
    direct: hive.Connection
    proxied: hive.Connection


@pytest.fixture(params=SEEDS, ids="seed {}".format)
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def sessions(spark: ThriftServer, proxy: ProxyProcess, seed: int) -> Iterator[Sessions]:
    star, database = random_star(seeded(seed)), f"differential_{seed}"
    with (
        closing(connect(spark.endpoint)) as direct,
        closing(connect(proxy.endpoint)) as proxied,
    ):
        run(direct, f"CREATE DATABASE {database}")
        for session in (direct, proxied):
            run(session, f"USE {database}")
            # Both ways of casting, since what `=` and IN cast to depends on it.
            run(session, f"SET spark.sql.ansi.enabled={str(seed % 2 == 0).lower()}")
            run(session, "SET spark.sql.shuffle.partitions=1")
        for table in star.tables:
            for statement in table.spark_statements():
                run(direct, statement)
        yield Sessions(star, database, direct, proxied)
        run(direct, f"DROP DATABASE {database} CASCADE")


def view_query(star: Star, seed: int, index: int) -> Query:
    """A statement over views of its own: the proxy would leave one alone whose text it knows otherwise."""
    return random_view_query(star, seeded(seed, index), f"w{index}_")


def plain_query(star: Star, seed: int, index: int) -> Query:
    return random_query(star, seeded(seed, index))


def chosen_statements(star: Star, seed: int, make: MakeQuery) -> Iterator[tuple[int, Query]]:
    """Those that will be narrowed, and some of the others."""
    found = 0
    for index in range(STATEMENTS_PER_SEED * 10):
        query = make(star, seed, index)
        planned = planned_on(query.sql, schema_of(star, query.views))
        narrows = not isinstance(planned, SkipReason) and bool(planned.key_queries or planned.wants_lists({}))
        if query.comparable and (narrows or index % LEFT_ALONE_EVERY == 0):
            yield index, query
            found += 1
        if found == STATEMENTS_PER_SEED:
            return


def answer(session: hive.Connection, direct: hive.Connection, query: Query) -> Answer | hive.Error:
    """The rows of the statement, or of what it wrote; the server's error where it has none."""
    try:
        if query.read_back is None:
            return Counter(tuple(map(repr, row)) for row in run(session, query.sql))
        for statement in (f"DROP TABLE IF EXISTS {TARGET}", *query.setup):
            run(direct, statement)
        run(session, query.sql)
        return Counter(tuple(map(repr, row)) for row in run(direct, query.read_back))
    except hive.Error as error:
        return error


def rewritten(proxy: ProxyProcess, database: str, sql: str) -> str:
    return str(explanation_of(proxy.admin_url, sql=sql, database=database)["rewritten"])


def make_views(sessions: Sessions, seed: int, query: Query) -> None:
    """Make the views past the proxy, with settings that the sessions which read them do not have."""
    ansi = seed % 2 == 0
    run(sessions.direct, f"SET spark.sql.ansi.enabled={str(not ansi).lower()}")
    run(sessions.direct, "SET spark.sql.session.timeZone=Pacific/Kiritimati")
    for view in query.views:
        run(sessions.direct, view.statement.replace(f"{HERE}.", f"{sessions.database}."))
    run(sessions.direct, f"SET spark.sql.ansi.enabled={str(ansi).lower()}")
    run(sessions.direct, "RESET spark.sql.session.timeZone")


@pytest.mark.parametrize("make", [plain_query, view_query])
def test_a_proxied_session_answers_as_a_direct_one(
    sessions: Sessions, proxy: ProxyProcess, seed: int, make: MakeQuery
) -> None:
    answered, rescued = 0, recovered_count(proxy)
    for index, generated in chosen_statements(sessions.star, seed, make):
        query = replace(generated, sql=generated.sql.replace(f"{HERE}.", f"{sessions.database}."))
        if query.views:
            make_views(sessions, seed, query)
        direct = answer(sessions.direct, sessions.direct, query)
        if isinstance(direct, hive.Error):
            # Which rows an error comes from is not promised, so fewer rows may well raise none.
            continue
        answered += 1
        proxied = answer(sessions.proxied, sessions.direct, query)
        if proxied == direct:
            continue
        text = rewritten(proxy, sessions.database, query.sql)
        what = (
            f"{text}\nfails: {proxied}"
            if isinstance(proxied, hive.Error)
            else report(query.sql, "rewritten", text, direct, proxied)
        )
        rerun = how_to_run("test_differential_on_spark.py", seed)
        pytest.fail(f"seed {seed}, statement {index}: {rerun}\n{what}\n\n{sessions.star}")
    assert answered >= STATEMENTS_PER_SEED / 2
    assert recovered_count(proxy) == rescued, "what was rewritten failed, and was run again as it came"
