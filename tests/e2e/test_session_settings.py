"""What users turn while sessions are open: settings of their own, and the configuration of the proxy."""

import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from pyhive import hive
from support.beeline_clients import run_beeline
from support.cheap_spark import QUICK_JAVA
from support.profile import only_deep
from support.proxies import patient

from demo.hive import connect, run
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server
from rewriter import SkipReason

pytestmark = pytest.mark.usefixtures("sample")

# Far more than a signal takes, on a busy machine too.
PROMPTLY_S = 120


def _until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PROMPTLY_S
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return met


def test_a_session_sees_what_it_has_set_and_what_holds_otherwise(proxied: hive.Connection) -> None:
    assert run(proxied, "SET starpruner.enabled") == [("starpruner.enabled", "true")]
    assert run(proxied, "SET starpruner.enabled=false") == [("starpruner.enabled", "false")]
    assert run(proxied, "SET starpruner.enabled") == [("starpruner.enabled", "false")]
    run(proxied, "RESET starpruner.enabled")
    assert run(proxied, "SET starpruner.enabled") == [("starpruner.enabled", "true")]


def test_a_setting_that_is_none_is_an_error_that_names_those_there_are(proxied: hive.Connection) -> None:
    with pytest.raises(hive.Error) as caught:
        run(proxied, "SET starpruner.enable=false")
    assert "starpruner.enable is no setting of a session" in str(caught.value)
    with pytest.raises(hive.Error) as caught:
        run(proxied, "SET starpruner.mode=shadows")
    assert "starpruner.mode cannot be" in str(caught.value)


def test_the_url_of_a_jdbc_client_may_hold_settings(java: Java, proxy: ProxyProcess, tmp_path: Path) -> None:
    shown = run_beeline(
        java, proxy.endpoint, "SET starpruner.enabled;", tmp_path, url_options="?starpruner.enabled=false"
    )
    assert "starpruner.enabled\tfalse" in shown.stdout


def test_a_configuration_that_is_read_anew_counts_for_a_session_that_is_open(
    spark: ThriftServer, tmp_path: Path
) -> None:
    path = tmp_path / "starpruner.toml"
    path.write_text("[rewrite]\nconsistency = 'window'\n")
    with proxy_process(spark.endpoint, tmp_path, options=("--config", str(path))) as proxy:
        with closing(connect(proxy.endpoint)) as session:

            def consistency() -> str:
                return str(run(session, "SET starpruner.consistency")[0][1])

            assert consistency() == "window"
            path.write_text("[rewrite]\nconsistency = 'strict'\n[proxy]\nconnections_max = 7\n")
            proxy.child.process.send_signal(signal.SIGHUP)
            assert _until(lambda: consistency() == "strict")
            path.write_text("[rewrite]\nconsistency = 'whatever'\n")
            proxy.child.process.send_signal(signal.SIGHUP)
            assert _until(lambda: "was not reloaded" in proxy.child.log.read_text())
            assert consistency() == "strict"
        log = proxy.child.log.read_text()
    assert "changes to [proxy] take effect after a restart only" in log
    assert "rewrite.consistency" in log


# The session's server has a session for each client, so that this one takes a server of its own.
@only_deep("starts a Spark server of its own, and test_session_policies has what follows from its answer")
def test_a_server_with_one_session_for_all_clients_is_left_alone(java: Java, tmp_path: Path) -> None:
    conf = {"spark.sql.hive.thriftServer.singleSession": "true", "spark.sql.catalogImplementation": "in-memory"}
    settings = ServerOptions(tmp_path / "spark", java_options=QUICK_JAVA, conf=conf)
    join = "SELECT f.ds FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"
    # What the server says of itself is heard on a busy machine too.
    with (
        thrift_server(settings, java, progress=lambda _: None) as server,
        proxy_process(server.endpoint, tmp_path, options=patient()) as proxy,
        closing(connect(proxy.endpoint)) as one,
        closing(connect(proxy.endpoint)) as another,
    ):
        for sql in (
            "CREATE DATABASE other",
            "CREATE TABLE f (id INT, ds STRING) USING parquet PARTITIONED BY (ds)",
            "INSERT INTO f VALUES (1, 'a'), (2, 'b')",
            "CREATE TABLE d (ds STRING, g INT) USING parquet",
            "INSERT INTO d VALUES ('a', 1)",
            "CREATE TABLE other.d AS SELECT 'b' AS ds, 1 AS g",
        ):
            run(one, sql)
        assert run(one, join) == [("a",)]
        told = "\n".join(str(line) for (line,) in run(one, f"EXPLAIN REWRITE {join}"))
        assert SkipReason.SHARED_SESSION.sentence in told
        # What the one uses counts for the other.
        run(one, "USE other")
        assert run(another, join.replace("f JOIN", "default.f AS f JOIN")) == [("b",)]
