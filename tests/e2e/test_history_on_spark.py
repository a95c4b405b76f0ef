"""Statements of real clients through a proxy of two workers, as its history and its pages show them."""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest
from pyhive import exc
from support.otlp_receiver import Receiver, attributes, otlp_receiver
from support.proxies import DEADLINE_S, options

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.sample import REGIONS, Sample
from demo.thrift_server import ThriftServer

STAR_JOIN = "SELECT count(*) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.holiday = 'Christmas Eve'"
PLAIN = "SELECT 'a plain one' AS a"
BROKEN = "SELECT no_such_column FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 12"
USER, OTHER = "hist_ann", "hist_bob"


@pytest.fixture(scope="module")
def collector() -> Iterator[Receiver]:
    with otlp_receiver() as one:
        yield one


@pytest.fixture(scope="module")
def recorded(
    spark: ThriftServer, sample: Sample, collector: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    directory = tmp_path_factory.mktemp("history")
    settings = (
        f"tracing.endpoint={collector.url}",
        *(f"history.path={directory / 'kept'}", "proxy.workers=2", "rewrite.cost_gate=false"),
        *(f"rewrite.key_query_deadline_s={DEADLINE_S}", f"catalog.query_deadline_s={DEADLINE_S}"),
    )
    with proxy_process(spark.endpoint, directory, options=options(*settings)) as process:
        assert sample.days > 0
        with closing(connect(process.endpoint, user=USER)) as session:
            # Explaining has the partitions listed, so that they can be counted.
            assert run(session, f"EXPLAIN REWRITE {STAR_JOIN}")
            assert run(session, STAR_JOIN) == run(session, STAR_JOIN)
            run(session, PLAIN)
            with pytest.raises(exc.OperationalError):
                run(session, BROKEN)
        with closing(connect(process.endpoint, user=OTHER)) as session:
            run(session, PLAIN)
        yield process


def get(proxy: ProxyProcess, path: str, user: str = USER) -> Any:
    login = b64encode(f"{user}:any".encode()).decode()
    request = Request(f"{proxy.admin_url}{path}", headers={"Authorization": f"Basic {login}"})
    with urlopen(request, timeout=DEADLINE_S) as reply:
        return json.load(reply)


def statements(proxy: ProxyProcess, **wanted: str) -> list[Any]:
    user = wanted.pop("seen_by", USER)
    found: list[Any] = get(proxy, f"/statements?{urlencode(wanted)}", user)["statements"]
    return found


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_rewritten_statement_is_found_with_its_partitions(recorded: ProxyProcess, sample: Sample) -> None:
    until(lambda: len(statements(recorded, text="Christmas")) == 3)
    newest, _, explained = statements(recorded, text="Christmas")
    assert (newest["outcome"], explained["outcome"]) == ("rewritten", "answered")
    found = get(recorded, f"/statements/{newest['id']}")
    assert found["original"] == STAR_JOIN
    assert "'2024-12-24'" in found["rewritten"]
    assert (found["user"], found["client"], found["database"]) == (USER, "127.0.0.1", "default")
    fact = next(scan for scan in found["scans"] if scan["table"].endswith("sales"))
    assert fact["partitions"] == {"total": sample.days * len(REGIONS), "kept": len(REGIONS)}
    assert found["run_s"] > 0


def test_a_statement_is_found_in_the_user_interface_of_spark_and_from_there(
    recorded: ProxyProcess, spark: ThriftServer
) -> None:
    until(lambda: len(statements(recorded, text="Christmas")) == 3)
    found = get(recorded, f"/statements/{statements(recorded, text='Christmas')[0]['id']}")
    (spark_id,) = found["spark_ids"]
    assert found["backend"] == str(spark.endpoint)
    until(lambda: spark_id in groups_of_jobs(spark))
    assert groups_of_jobs(spark)[spark_id] == found["rewritten"]
    assert [one["id"] for one in statements(recorded, text=spark_id)] == [found["id"]]
    assert [one["id"] for one in statements(recorded, text=found["id"])] == [found["id"]]
    assert spark_id in urlopen(f"{spark.ui_url}/sqlserver/", timeout=DEADLINE_S).read().decode()


def test_its_trace_and_its_lines_in_the_log_have_the_same_id(recorded: ProxyProcess, collector: Receiver) -> None:
    until(lambda: len(statements(recorded, text="Christmas")) == 3)
    found = get(recorded, f"/statements/{statements(recorded, text='Christmas')[0]['id']}")
    trace = bytes.fromhex(found["id"] + found["id"][-8:])
    until(lambda: any(span.trace_id == trace for span in collector.spans))
    spans = {span.name: span for span in collector.spans if span.trace_id == trace}
    assert {"deciding", "run"} < spans.keys()
    (whole,) = [span for span in spans.values() if not span.parent_span_id]
    about = attributes(whole.attributes)
    assert about["starpruner.statement.id"] == found["id"]
    assert about["starpruner.spark.ids"] == found["spark_ids"]
    assert (about["user.name"], about["starpruner.partitions.kept"]) == (USER, len(REGIONS))
    assert f"statement {found['id']}: narrowed 1 of 2 scans" in recorded.child.log.read_text()


def groups_of_jobs(spark: ThriftServer) -> dict[str, str]:
    """The descriptions of Spark's jobs by their groups."""
    api = f"{spark.ui_url}/api/v1/applications"
    (application,) = json.load(urlopen(api, timeout=DEADLINE_S))
    jobs = json.load(urlopen(f"{api}/{application['id']}/jobs", timeout=DEADLINE_S))
    return {job["jobGroup"]: job["description"] for job in jobs if "jobGroup" in job}


def test_a_plain_and_a_failed_one_have_their_outcome(recorded: ProxyProcess) -> None:
    until(lambda: bool(statements(recorded, text="no_such_column")))
    (plain,) = statements(recorded, text="a plain one")
    assert (plain["outcome"], plain["skip_reason"]) == ("original", "NO_JOIN_IN_TEXT")
    (failed,) = statements(recorded, text="no_such_column")
    assert failed["outcome"] == "failed"
    assert "no_such_column" in get(recorded, f"/statements/{failed['id']}")["message"]


def test_a_user_sees_no_statement_of_another(recorded: ProxyProcess) -> None:
    until(lambda: bool(statements(recorded, text="a plain one", seen_by=OTHER)))
    assert {one["user"] for one in statements(recorded, seen_by=OTHER)} == {OTHER}
    foreign = statements(recorded)[0]["id"]
    with pytest.raises(HTTPError, match="404"):
        get(recorded, f"/statements/{foreign}", OTHER)


def test_both_workers_show_what_runs_in_either(recorded: ProxyProcess) -> None:
    with closing(connect(recorded.endpoint, user=USER)) as session:
        # One worker has the session, and any answers.
        until(lambda: get(recorded, "/now")["session_count"] == 1)
        run(session, PLAIN)
        for _ in range(8):
            until(lambda: get(recorded, "/now")["session_count"] == 1)


def test_the_cookie_of_one_worker_counts_for_both(recorded: ProxyProcess) -> None:
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    form = opener.open(f"{recorded.admin_url}/sign-in", timeout=DEADLINE_S).read().decode()
    token = form.split('name="token" value="')[1].split('"')[0]
    body = urlencode({"token": token, "user": USER, "password": "any", "next": "/"}).encode()
    assert "Saved today" in opener.open(f"{recorded.admin_url}/sign-in", body, timeout=DEADLINE_S).read().decode()
    for _ in range(6):
        page = opener.open(f"{recorded.admin_url}/", timeout=DEADLINE_S).read().decode()
        assert "Partitions not read" in page
