"""The golden statements in front of another Spark than the environment's: the proxy answers as the server does.

What a server refuses itself is left out, tables too: older ones lack functions, types and properties. The texts
that the proxy sends are recorded for the environment's Spark alone (`test_golden_on_spark.py`).
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

import pytest
from pyhive import hive
from support.explain_requests import explanation_of
from support.golden_cases import Refusal, Take, refusals, table_statements, takes
from support.golden_sets import LISTED, PLAIN, settings_of
from support.golden_stage import answer
from support.metrics_of_proxy import recovered_count
from support.proxies import patient

from demo.hive import connect, run
from demo.java import SPARK_HOME
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

pytestmark = pytest.mark.skipif(
    not os.environ.get(SPARK_HOME), reason="make test-servers alone starts another Spark"
)

SETS = {cases.kind: cases for cases in (PLAIN, LISTED)}
# The others want what older servers lack.
NARROWED_MIN = 0.8


@dataclass(frozen=True)
class Sessions:
    """A session on the server and one through a proxy, in the database of one kind of cases."""

    database: str
    direct: hive.Connection
    proxied: hive.Connection
    proxy: ProxyProcess


@pytest.fixture(scope="module")
def sessions(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Sessions]]:
    with ExitStack() as stack:
        proxy = stack.enter_context(
            proxy_process(spark.endpoint, tmp_path_factory.mktemp("goldens"), options=patient())
        )
        made = {}
        for kind, cases in SETS.items():
            database = cases.database
            direct, proxied = (stack.enter_context(closing(connect(one.endpoint))) for one in (spark, proxy))
            run(direct, f"CREATE DATABASE {database}")
            for session in (direct, proxied):
                run(session, f"USE {database}")
            for statement in table_statements(kind):
                with suppress(hive.Error):
                    run(direct, statement)
            run(direct, f"USE {database}")
            made[kind] = Sessions(database, direct, proxied, proxy)
        yield made


def cases_of(kind: str) -> list[Take | Refusal]:
    """The cases that read alone."""
    cases: list[Take | Refusal] = [*takes(kind), *(case for case in refusals(kind) if case.executes)]
    return [case for case in cases if case.sql.lstrip("( ").split(None, 1)[0].upper() in {"SELECT", "WITH"}]


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind in SETS for case in cases_of(kind)], ids=str)
def test_the_proxy_answers_as_the_server_does(
    sessions: dict[str, Sessions], kind: str, case: Take | Refusal
) -> None:
    here = sessions[kind]
    settings = settings_of(case).items()
    try:
        for session in (here.direct, here.proxied):
            for name, setting in settings:
                run(session, f"SET {name}={setting}")
        try:
            direct = answer(here.direct, case.sql)
        except hive.Error:
            pytest.skip("another Spark takes the statement: this one refuses it")
        before = recovered_count(here.proxy)
        assert answer(here.proxied, case.sql) == direct
        assert recovered_count(here.proxy) == before, "what was rewritten failed, and was run again as it came"
    finally:
        for session in (here.direct, here.proxied):
            for name, _ in settings:
                run(session, f"RESET {name}")


@pytest.mark.parametrize("kind", SETS)
def test_most_of_them_are_narrowed(sessions: dict[str, Sessions], kind: str) -> None:
    here = sessions[kind]
    changed = [
        bool(explanation_of(here.proxy.admin_url, sql=case.sql, database=here.database).get("changed"))
        for case in cases_of(kind)
        if isinstance(case, Take)
    ]
    assert sum(changed) >= NARROWED_MIN * len(changed)
