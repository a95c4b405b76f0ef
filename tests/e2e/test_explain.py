"""What the proxy would do, from the command line and over HTTP."""

import json
import re
import subprocess
from base64 import b64encode
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import jsonschema
import pytest
from pyhive import hive
from support.beeline_clients import comparable_message, run_beeline

from demo.hive import run
from demo.java import Java
from demo.proxy_process import ProxyProcess, starpruner_command
from demo.sample import REGIONS, Sample
from demo.thrift_server import ThriftServer
from proxy.admin.openapi import description
from rewriter import SkipReason

STAR_JOIN = "SELECT count(*) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.holiday = 'Christmas Eve'"
LOGIN = b64encode(b"tester:secret").decode()
SECONDS_MAX = 120
# A busy machine makes a query of ours slow, not absent.
PATIENT = ("--set", "rewrite.key_query_deadline_s=60", "--set", "catalog.query_deadline_s=60")


def _post(proxy: ProxyProcess, body: bytes) -> Any:
    request = Request(
        f"{proxy.admin_url}/explain",
        data=body,
        headers={"Content-Type": "application/json", "Authorization": f"Basic {LOGIN}"},
    )
    with urlopen(request, timeout=SECONDS_MAX) as reply:
        return json.load(reply)


def _explain(spark: ThriftServer, *arguments: str) -> str:
    return subprocess.run(
        [*starpruner_command(), "explain", "--backend", str(spark.endpoint), *PATIENT, *arguments],
        # As a newcomer: no login named, nothing in the environment.
        env={},
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    ).stdout


def _assert_explains_the_star_join(explained: dict[str, Any], sample: Sample) -> None:
    assert explained["original"] == STAR_JOIN
    assert explained["changed"]
    assert "'2024-12-24'" in explained["rewritten"]
    fact = next(scan for scan in explained["scans"] if scan["table"].endswith("sales"))
    assert fact["alias"] == "s"
    assert fact["reducers"][0]["columns"] == ["ds"]
    assert fact["reducers"][0]["keys"] == 1
    assert fact["partitions"] == {"total": sample.days * len(REGIONS), "kept": len(REGIONS)}
    assert fact["skip_reason"] is None
    assert explained["timings_ms"]["key_queries"] > 0


def test_post_explain_answers_the_rewrite_and_its_gain(proxy: ProxyProcess, sample: Sample) -> None:
    _assert_explains_the_star_join(_post(proxy, json.dumps({"sql": STAR_JOIN}).encode()), sample)


def test_starpruner_explain_json_is_what_post_explain_answers(spark: ThriftServer, sample: Sample) -> None:
    _assert_explains_the_star_join(json.loads(_explain(spark, "--json", STAR_JOIN)), sample)


@pytest.mark.usefixtures("sample")
def test_starpruner_explain_tells_a_person_the_key_query_and_the_partitions(spark: ThriftServer) -> None:
    text = _explain(spark, STAR_JOIN)
    for words in ("`ds` AS key", "'2024-12-24'", f"{len(REGIONS)} of"):
        assert words in text


def test_key_queries_are_not_run_when_the_request_says_so(proxy: ProxyProcess, sample: Sample) -> None:
    explained = _post(proxy, json.dumps({"sql": STAR_JOIN, "run_key_queries": False}).encode())
    fact = next(scan for scan in explained["scans"] if scan["table"].endswith("sales"))
    assert fact["reducers"][0]["keys"] is None
    assert fact["partitions"]["total"] == sample.days * len(REGIONS)
    assert not explained["changed"]


def test_a_name_is_looked_up_in_the_database_of_the_request(proxy: ProxyProcess, sample: Sample) -> None:
    explained = _post(proxy, json.dumps({"sql": STAR_JOIN, "database": "default"}).encode())
    _assert_explains_the_star_join(explained, sample)


def test_sql_that_does_not_parse_is_an_answer_that_says_why(proxy: ProxyProcess) -> None:
    explained = _post(proxy, json.dumps({"sql": "SELEC 1"}).encode())
    assert explained["changed"] is False
    assert explained["rewritten"] == "SELEC 1"
    assert explained["skip_reason"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"sql": 1}'])
def test_a_bad_request_is_a_400_and_a_sentence(proxy: ProxyProcess, body: bytes) -> None:
    with pytest.raises(HTTPError) as caught:
        _post(proxy, body)
    with caught.value as reply:
        assert reply.code == HTTPStatus.BAD_REQUEST
        assert " " in reply.read().decode()


@pytest.mark.usefixtures("sample")
def test_a_refusal_names_its_cause_in_the_statement(proxy: ProxyProcess) -> None:
    some_days = "(SELECT ds FROM dates WHERE uuid() < holiday) d"
    sql = f"SELECT count(*) FROM sales s JOIN {some_days} ON s.ds = d.ds"
    explained = _post(proxy, json.dumps({"sql": sql}).encode())
    fact, dimension = sorted(explained["scans"], key=lambda scan: str(scan["alias"]), reverse=True)
    assert (fact["skip_reason"], fact["is_fact"]) == ("REDUCER_NOT_UNDERSTOOD", True)
    assert fact["cause"] == "d: uuid(..) is not known to give the same value each time"
    assert (dimension["skip_reason"], dimension["is_fact"]) == ("NOT_PARTITIONED", False)


@pytest.mark.usefixtures("sample")
def test_explain_rewrite_names_the_join_that_keeps_rows(proxied: hive.Connection) -> None:
    sql = "SELECT count(*) FROM sales s LEFT JOIN dates d ON s.ds = d.ds AND d.holiday = 'Christmas Eve'"
    lines = [str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}")]
    at = lines.index(f"  left alone   {SkipReason.OUTER_JOIN.sentence}")
    kept = "s LEFT JOIN d keeps rows of s that have no partner, and no filter on d rejects them"
    assert lines[at + 1] == f"  cause        {kept}"
    assert "No facts:" in lines


def test_explain_rewrite_is_a_result_set_of_the_lines_in_order(proxied: hive.Connection, sample: Sample) -> None:
    result, empty, *lines = [str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {STAR_JOIN}")]
    kept = f"{len(REGIONS)} of {sample.days * len(REGIONS)} partitions kept"
    assert re.fullmatch(rf"Scan of sales AS s: {kept}, keys of dates, 1 key, [\d,]+ ms", result)
    assert (empty, lines[0]) == ("", "Rewritten:")
    assert "'2024-12-24'" in lines[1]
    assert f"  partitions   {len(REGIONS)} of {sample.days * len(REGIONS)} kept" in lines
    assert lines[-1].startswith("Time: ")


def test_explain_rewrite_json_is_what_post_explain_answers(proxied: hive.Connection, sample: Sample) -> None:
    with closing(proxied.cursor()) as cursor:
        cursor.execute(f"EXPLAIN REWRITE JSON {STAR_JOIN}")
        ((name, type_name, *_),) = cursor.description
        ((answer,),) = cursor.fetchall()
    assert (name, type_name) == ("rewrite", "STRING_TYPE")
    explained = json.loads(answer)
    _assert_explains_the_star_join(explained, sample)
    schemas = description(())["components"]
    jsonschema.validate(explained, {"$ref": "#/components/schemas/ExplainView", "components": schemas})


def test_explain_rewrite_in_a_session_that_is_switched_off_shows_what_would_be_done(
    proxied: hive.Connection, sample: Sample
) -> None:
    run(proxied, "SET starpruner.enabled=false")
    reason, missed, _, *lines = [str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {STAR_JOIN}")]
    partitions = f"{len(REGIONS)} of {sample.days * len(REGIONS)}"
    assert reason == f"Not rewritten: {SkipReason.SWITCHED_OFF.sentence}"
    assert missed == f"Scan of sales AS s: {partitions} partitions would be kept, keys of dates, 1 key"
    assert lines[:3] == ["Left as it is:", f"  {STAR_JOIN}", f"  {SkipReason.SWITCHED_OFF.sentence}"]
    assert f"  partitions   {partitions} would be kept" in lines


# --- SHOW STARPRUNER STATEMENTS

COLUMNS = [
    ("id", "STRING_TYPE"),
    ("started_at", "TIMESTAMP_TYPE"),
    ("outcome", "STRING_TYPE"),
    ("seconds", "DOUBLE_TYPE"),
    ("deciding_s", "DOUBLE_TYPE"),
    ("partitions_kept", "BIGINT_TYPE"),
    ("partitions_total", "BIGINT_TYPE"),
    ("reasons", "STRING_TYPE"),
    ("statement", "STRING_TYPE"),
]


def _shown(session: hive.Connection, sql: str = "SHOW STARPRUNER STATEMENTS") -> list[Any]:
    """The rows, of columns that do not depend on them."""
    with closing(session.cursor()) as cursor:
        cursor.execute(sql)
        assert [column[:2] for column in cursor.description] == COLUMNS
        found: list[Any] = cursor.fetchall()
        return found


def test_a_session_is_shown_its_last_statements(proxied: hive.Connection, sample: Sample) -> None:
    assert _shown(proxied, "SHOW STARPRUNER STATEMENTS LIMIT 0") == []
    for sql in (STAR_JOIN, "SELECT 'it''s'", "SELECT no_such_column"):
        with suppress(hive.Error):
            run(proxied, sql)
    failed, plain, joined, shown, opened = _shown(proxied)
    # PyHive begins so.
    assert (opened[2], opened[8]) == ("original", "USE `default`")
    assert (failed[2], failed[8]) == ("failed", "SELECT no_such_column")
    assert plain[2:] == ("original", plain[3], plain[4], None, None, "NO_JOIN_IN_TEXT", "SELECT 'it''s'")
    assert (joined[2], joined[7:]) == ("rewritten", ("", STAR_JOIN))
    assert joined[5:7] in {(len(REGIONS), sample.days * len(REGIONS)), (None, None)}
    assert 0 < joined[4] < joined[3] < SECONDS_MAX
    assert (shown[2], shown[8]) == ("answered", "SHOW STARPRUNER STATEMENTS LIMIT 0")
    assert len(_shown(proxied, "show starpruner statements limit 2;")) == 2


@pytest.mark.parametrize(
    "setting",
    [
        *("spark.sql.session.timeZone=Asia/Tokyo", "spark.sql.timestampType=TIMESTAMP_NTZ"),
        *("spark.sql.ansi.enabled=true", "spark.sql.ansi.enabled=false"),
        *("spark.sql.parser.escapedStringLiterals=true", "spark.sql.ansi.enforceReservedKeywords=true"),
    ],
)
def test_settings_of_a_session_change_nothing_but_the_zone(proxied: hive.Connection, setting: str) -> None:
    run(proxied, f"SET {setting}")
    run(proxied, "SELECT 'a\tb'")
    plain = _shown(proxied)[0]
    assert plain[8] == "SELECT 'a\tb'"
    ((now,),) = run(proxied, "SELECT current_timestamp")
    assert abs((now - plain[1]).total_seconds()) < SECONDS_MAX


def test_what_is_not_in_exactly_this_form_is_for_spark(direct: hive.Connection, proxied: hive.Connection) -> None:
    told = []
    for session in (direct, proxied):
        with pytest.raises(hive.Error) as caught:
            run(session, "SHOW STARPRUNER STATEMENTS LIMIT")
        told.append(comparable_message(str(caught.value.args[0].status.errorMessage)))
    assert told[0] == told[1]


def test_beeline_prints_them_too(proxy: ProxyProcess, java: Java, tmp_path: Path, sample: Sample) -> None:
    script = f"EXPLAIN REWRITE {STAR_JOIN};\nEXPLAIN REWRITE JSON SELECT 1;\nSHOW STARPRUNER STATEMENTS LIMIT 1;\n"
    printed = run_beeline(java, proxy.endpoint, script, tmp_path)
    assert f"Scan of sales AS s: {len(REGIONS)} of {sample.days * len(REGIONS)} partitions kept" in printed.stdout
    assert '"original":"SELECT 1"' in printed.stdout.replace('""', '"')
    last = printed.stdout.rstrip().splitlines()[-2:]
    assert last[0] == "\t".join(name for name, _ in COLUMNS)
    assert last[1].endswith("EXPLAIN REWRITE JSON SELECT 1")
