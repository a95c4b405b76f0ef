"""What was counted, as Prometheus reads it from the admin port."""

import time
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from http import HTTPStatus

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families
from support.admin_pages import idle_application

from proxy.backends.pool import BackendPool
from proxy.config.config import Config
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.query import FailureKind, QueryFailed, Rows
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.metastore_limits import MetastoreLimits
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.metrics import CONTENT_TYPE, Metrics
from rewriter import (
    Column,
    KeySet,
    Rewrite,
    RewriteLimits,
    Rule,
    SkipReason,
    Statement,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.files.file_index import FileSelection

Samples = dict[tuple[str, frozenset[str]], float]
K = Column("k", "int")
FACT, DIMENSION = TableFacts((K,), ("k",)), TableFacts((K, Column("g", "int")))


class Opinion(Enum):
    NARROW = "narrow"
    LEAVE = "leave"


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def value(metrics: Metrics) -> Callable[..., float | None]:
    def found(name: str, *labels: str) -> float | None:
        samples = parsed(metrics.exposition().decode())
        return samples.get((f"starpruner_{name}", frozenset(labels)))

    return found


Value = Callable[..., float | None]


def rewrite(sql: str) -> Rewrite:
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    found = plan(statement, {TableName(("f",)): FACT, TableName(("d",)): DIMENSION}, RewriteLimits())
    return apply(found, {query: KeySet.of(("int",), [(1,)]) for query in found.key_queries}, RewriteLimits())


NARROWED = "SELECT f.k FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
UNFILTERED = "SELECT f.k FROM f JOIN d ON f.k = d.k"


def test_a_narrowed_statement_counts_with_its_scans(metrics: Metrics, value: Value) -> None:
    metrics.decided(rewrite(NARROWED), None, 0.2)
    assert value("statements_total", "rewritten") == 1
    assert value("scans_total", "narrowed") == 1
    assert value("scans_total", "unchanged") == 1
    assert value("skips_total", "not_partitioned") == 1
    assert value("decision_seconds_sum") == 0.2


def test_a_statement_that_is_left_alone_counts_with_the_reasons(metrics: Metrics, value: Value) -> None:
    metrics.decided(rewrite(UNFILTERED), None, 0.01)
    metrics.decided(None, SkipReason.DOES_NOT_PARSE, 0.01)
    assert value("statements_total", "original") == 2
    assert value("statements_total", "rewritten") == 0
    assert value("skips_total", "reducer_unfiltered") == 1
    assert value("skips_total", "does_not_parse") == 1


def test_scans_of_a_text_that_was_not_proven_were_not_narrowed(metrics: Metrics, value: Value) -> None:
    metrics.decided(rewrite(NARROWED), SkipReason.NOT_VERIFIED, 0.01)
    assert value("statements_total", "original") == 1
    assert value("scans_total", "narrowed") == 0
    assert value("scans_total", "unchanged") == 2


def test_what_hints_skip_counts_in_files_and_bytes(metrics: Metrics, value: Value) -> None:
    narrowed = rewrite(NARROWED)
    files = FileSelection((), kept=1, kept_bytes=10, total=4, total_bytes=100)
    hinted = replace(narrowed, scans=tuple(replace(scan, files=files) for scan in narrowed.scans[:1]))
    metrics.decided(hinted, None, 0.2)
    metrics.decided(hinted, SkipReason.NOT_VERIFIED, 0.2)
    assert value("skipped_files_total") == 3
    assert value("skipped_bytes_total") == 90


def test_rules_count_as_tried_as_applied_and_as_fallen_back(metrics: Metrics, value: Value) -> None:
    assert value("rule_statements_total", "inner_join", "fell_back") == 0
    metrics.decided(rewrite(NARROWED), None, 0.2)
    metrics.decided(rewrite(NARROWED), SkipReason.NOT_VERIFIED, 0.3)
    metrics.decided(None, SkipReason.DOES_NOT_PARSE, 0.1)
    metrics.fell_back(rewrite(NARROWED).rules)
    counted = [value("rule_statements_total", "inner_join", one) for one in ("tried", "applied", "fell_back")]
    assert counted == [2, 1, 1]
    assert value("rule_decision_seconds_total", "inner_join") == pytest.approx(0.5)
    assert value("rule_statements_total", "exists", "tried") == 0


def test_ends_are_told_apart_by_what_was_sent(metrics: Metrics, value: Value) -> None:
    metrics.statement_ended(OutcomeKind.RECOVERED, 2.0, rewritten=True)
    metrics.statement_ended(OutcomeKind.FINISHED, 1.0, rewritten=True)
    metrics.statement_ended(OutcomeKind.FINISHED, 3.0, rewritten=False)
    assert value("statement_seconds_count", "rewritten", "recovered") == 1
    assert value("statement_seconds_sum", "rewritten", "finished") == 1
    assert value("statement_seconds_sum", "original", "finished") == 3


def test_key_queries_count_by_what_became_of_them(metrics: Metrics, value: Value) -> None:
    metrics.key_query_answered(Rows((), (), 0.25))
    metrics.key_query_answered(QueryFailed(FailureKind.DEADLINE, "SELECT 'secret'", 5.0))
    assert value("key_query_seconds_sum", "answered") == 0.25
    assert value("key_query_seconds_count", "deadline") == 1
    assert b"secret" not in metrics.exposition()


def test_the_gate_and_shadow_runs_count_by_what_they_said(metrics: Metrics, value: Value) -> None:
    metrics.gate_decided(Opinion.LEAVE)
    metrics.shadow_compared(Opinion.NARROW)
    Metrics().gate_decided(Opinion.NARROW)
    assert value("gate_decisions_total", "leave") == 1
    assert value("gate_decisions_total", "narrow") is None, "another proxy in this process counts for itself"
    assert value("shadow_comparisons_total", "narrow") == 1


def test_what_is_watched_is_read_anew_each_time(metrics: Metrics, value: Value) -> None:
    counts = {"connections": 3}
    metrics.watch_connections(lambda: counts["connections"], 9)
    assert value("connections_open") == 3
    counts["connections"] = 2
    assert value("connections_open") == 2


def test_each_reload_counts_and_the_last_one_of_each_result_is_told(metrics: Metrics, value: Value) -> None:
    began = value("config_reload_timestamp_seconds", "applied")
    assert began is not None
    assert time.time() - 60 < began <= time.time(), "the start counts as one"
    assert value("config_reload_timestamp_seconds", "refused") == 0
    metrics.reloaded("refused")
    assert value("config_reloads_total", "refused") == 1
    assert value("config_reloads_total", "applied") == 0
    refused = value("config_reload_timestamp_seconds", "refused")
    assert refused is not None
    assert refused >= began


def test_certificates_and_savings_are_told_as_they_are_now(metrics: Metrics, value: Value) -> None:
    ends, saved = {"h:1": time.time() + 500}, {"measured": -3.0}
    metrics.watch_certificates(ends.items)
    metrics.watch_savings(saved.items)
    assert value("certificate_left_seconds", "h:1") == pytest.approx(500, abs=30)
    assert value("saved_seconds", "measured") == -3
    saved.clear()
    ends["h:1"] -= 1_000
    assert value("saved_seconds", "measured") is None, "where nothing is known, nothing is told"
    assert value("certificate_left_seconds", "h:1") == pytest.approx(-500, abs=30)


def test_the_quarantine_counts_by_kind_and_names_nothing(metrics: Metrics, value: Value) -> None:
    quarantine, metastore = Quarantine(600.0, lambda: 0.0), MetastoreLimits("derby", 600.0, lambda: 0.0)
    metrics.watch_quarantine(quarantine)
    metrics.watch_metastore(lambda: metastore)
    assert value("quarantined", "rule") == 0
    for shape in ("one", "two", "three"):
        quarantine.blame(frozenset({Rule.EXISTS}), StatementKey("ann", shape))
    metastore.refused(frozenset({TableName(("secrets",))}))
    assert value("quarantined", "fingerprint") == 3
    assert value("quarantined", "rule") == 1
    assert value("metastore_tables_lowered") == 1
    assert b"secrets" not in metrics.exposition()


async def test_the_admin_port_answers_what_prometheus_reads(metrics: Metrics) -> None:
    async def exposition() -> bytes:
        return metrics.exposition()

    metrics.decided(rewrite(NARROWED), None, 0.2)
    app = idle_application(Config(), BackendPool([], time.monotonic), exposition)
    async with TestClient(TestServer(app)) as client, client.get("/metrics") as reply:
        assert reply.status == HTTPStatus.OK
        assert reply.headers["Content-Type"] == CONTENT_TYPE
        samples = parsed(await reply.text())
    assert samples["starpruner_statements_total", frozenset({"rewritten"})] == 1
