"""What one user may see, another learns nothing of: not from an error, an explanation, a cache or a log.

The embedded server lets everybody see everything, so the man in the middle plays the authorizer: to bob it
answers what it would answer had bob no rights on the tables.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from fault_stage import DATABASE, JOIN, Stage, fault_stage, make_tables, seen
from support.explain_requests import explanation_of
from support.fault_acts import Refuse
from support.fault_proxy import Fault

from demo.hive import run
from demo.thrift_server import ThriftServer

# What the tables hold that bob must not learn of. The keys are d10 to d27.
SECRETS = re.compile(r"\bd[12]\d\b|wanted|\b18\b|\b24\b")
KEYS = re.compile(r"\bd[12]\d\b|\b18\b")
DENIED = "[INSUFFICIENT_PERMISSIONS] User bob has no SELECT on it"
BOBS_JOIN = JOIN.replace("wanted", "guess")

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    # With all that may be remembered of one user's statements: keys too.
    options = ("--set", "log.level=debug", "--set", "rewrite.key_staleness_s=600")
    with fault_stage(spark, tmp_path_factory.mktemp("isolation"), *options) as stage:
        stage.middle.faults = [denied("fact|dim")]
        with stage.proxied("ann") as ann:
            assert seen(ann, JOIN) == stage.directly(JOIN)
            assert "'d10'" in str(run(ann, f"EXPLAIN REWRITE {JOIN}")), "ann may know"
        assert "d10" in explained(stage, "ann", JOIN)
        yield stage


def denied(tables: str, *, but: str = "SELECT rewrite FROM VALUES") -> Fault:
    """Bob may not read, describe or list the tables. An explanation may name them: he did so himself."""
    pattern = rf"^(?!SELECT rewrite FROM VALUES|{but}).*\b(?:{tables})\b"
    return Fault(Refuse(DENIED, "42501"), "ExecuteStatement", pattern, user="bob")


def explained(stage: Stage, user: str, sql: str) -> str:
    """What POST /explain answers a user."""
    asked = {"sql": sql, "database": DATABASE}
    return json.dumps(explanation_of(stage.proxy.admin_url, user, SECONDS_MAX, **asked))


def log_of(stage: Stage) -> str:
    log: Path = stage.proxy.child.log
    return log.read_text()


def test_a_statement_of_a_user_without_rights_fails_as_it_does_directly(stage: Stage) -> None:
    with stage.proxied("bob") as bob:
        kind, about = seen(bob, BOBS_JOIN)
    assert kind == "error"
    assert DENIED in about[-1]
    assert SECRETS.search(str(about)) is None


@pytest.mark.parametrize(
    "sql", [BOBS_JOIN, f"SELECT * FROM {DATABASE}.fact f, {DATABASE}.dim d WHERE f.ds = d.ds"]
)
def test_explanations_tell_a_user_without_rights_nothing(stage: Stage, sql: str) -> None:
    with stage.proxied("bob") as bob:
        lines = str(run(bob, f"EXPLAIN REWRITE {sql}"))
    for told in (lines, explained(stage, "bob", sql)):
        assert SECRETS.search(re.sub(r'"timings_ms":.*|Time: .*', "", told)) is None
        assert "narrow" not in told.lower()


@pytest.mark.parametrize("right", ["DESCRIBE", "SHOW"])
def test_who_may_describe_the_small_side_but_not_read_it_learns_no_keys_of_it(stage: Stage, right: str) -> None:
    may_only = denied("dim", but=right)
    with stage.middle.faulty(may_only), stage.proxied("bob") as bob:
        # A state that no session of his was in: what those were told is believed for a minute.
        run(bob, f"SET spark.note.of.this.test={right}")
        lines = str(run(bob, f"EXPLAIN REWRITE {JOIN}"))
        assert may_only.done
        # How many partitions the other table has he may know, and the milliseconds may be as many as the keys.
        assert KEYS.search(re.sub(r"Time: .*", "", lines)) is None


def test_the_log_and_the_metrics_hold_no_key_and_no_text_of_a_statement(stage: Stage) -> None:
    told = log_of(stage)
    assert "narrowed 1 of 2 scans" in told, "the log is the one of ann's statements"
    # The ids of statements are of hexadecimal digits, and may have a d10 within.
    assert re.search(r"\bd1\d\b|wanted|SELECT", told) is None
    for page in ("/metrics", "/queries", "/"):
        try:
            with urlopen(stage.proxy.admin_url + page, timeout=SECONDS_MAX) as reply:
                assert re.search(r"\bd1\d\b|wanted|SELECT", reply.read().decode()) is None
        except HTTPError as missing:
            missing.close()
