"""Counters and gauges of the proxy in Prometheus format.

A registry of its own: two proxies in one process, as in tests, do not add up. Labels are codes of enums and the
configured backends and listeners, never users or text, so the number of series is bounded.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from importlib.metadata import version
from typing import Final, Protocol

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from proxy.backends.backend import BackendView
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.query import QueryFailed, QueryResult
from proxy.session.feedback.metastore_limits import MetastoreLimits
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import QuarantineKind
from rewriter import Rewrite, Rule, ScanOutcome, SkipReason

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

# A key query takes 0.1 to 0.3 s where all is well; its deadline is 5 s.
_KEY_QUERY_S: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
# To decide takes milliseconds of planning, and then what the key queries take.
_DECISION_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Statements run from a tenth of a second to hours.
_STATEMENT_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)


class StatementCounts(Protocol):
    """The counts that the history gives."""

    @property
    def session_count(self) -> int:
        """Sessions that are open."""
        ...

    @property
    def running_count(self) -> int:
        """Statements that run."""
        ...

    @property
    def partitions_spared(self) -> int:
        """Partitions that finished statements did not read."""
        ...

    def losses_by_reason(self) -> tuple[tuple[str, int], ...]:
        """Statements that are missing from the history."""
        ...


class Metrics:
    """Counters and gauges, told by methods named after what happened. Safe to use from several threads."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        # Memory, processor time and open files of the proxy itself.
        _ = ProcessCollector(registry=registry)
        self._statements = Counter(
            "starpruner_statements",
            "Statements that rewriting was offered to, by the text that was sent: rewritten or original.",
            ["outcome"],
            registry=registry,
        )
        for text in ("rewritten", "original"):
            self._statements.labels(text)
        self._decisions = Histogram(
            "starpruner_decision_seconds",
            "Time from a statement's arrival until it went on, key queries included.",
            registry=registry,
            buckets=_DECISION_S,
        )
        scans = Counter(
            "starpruner_scans",
            "Table references seen, by whether they were narrowed, read in fewer splits alone (grouped), or left"
            " unchanged.",
            ["outcome"],
            registry=registry,
        )
        self._narrowed, self._grouped, self._unchanged = map(scans.labels, ("narrowed", "grouped", "unchanged"))
        self._skips = Counter(
            "starpruner_skips",
            "Statements and scans that were not rewritten, by the code that explain gives.",
            ["reason"],
            registry=registry,
        )
        self._rules = Counter(
            "starpruner_rule_statements",
            "Statements by the rules that their scans could be narrowed by (tried), those that went out narrowed"
            " by them (applied), and those of which then the original was run (fell_back).",
            ["rule", "result"],
            registry=registry,
        )
        self._rules_s = Counter(
            "starpruner_rule_decision_seconds",
            "Time of deciding of the statements that tried a rule, all of it for each of their rules.",
            ["rule"],
            registry=registry,
        )
        for rule in Rule:
            # All at zero, so that the first fallback is an increase.
            self._rules_s.labels(rule.value)
            for result in ("tried", "applied", "fell_back"):
                self._rules.labels(rule.value, result)
        self._ends = Histogram(
            "starpruner_statement_seconds",
            "Time from when a statement went to the backend until its end was seen, by its outcome.",
            ["sent", "outcome"],
            registry=registry,
            buckets=_STATEMENT_S,
        )
        self._key_queries = Histogram(
            "starpruner_key_query_seconds",
            "Time that key queries took, by whether they were answered or why not.",
            ["outcome"],
            registry=registry,
            buckets=_KEY_QUERY_S,
        )
        self._files = Counter("starpruner_skipped_files", "Files that Spark was told to skip.", registry=registry)
        self._bytes = Counter(
            "starpruner_skipped_bytes", "The size of the files that Spark was told to skip.", registry=registry
        )
        self._gate = Counter(
            "starpruner_gate_decisions", "Verdicts of the cost gate on statements.", ["verdict"], registry=registry
        )
        self._key_checks = Counter(
            "starpruner_key_checks",
            "Remembered keys of a statement, asked for again while it ran, by what came of it.",
            ["verdict"],
            registry=registry,
        )
        self._overtaken_writes = Counter(
            "starpruner_overtaken_writes",
            "Rewritten statements that wrote while a table was written that their keys came from.",
            registry=registry,
        )
        self._shadows = Counter(
            "starpruner_shadow_comparisons",
            "Statements whose answer was compared with that of the rewritten one, by the verdict.",
            ["verdict"],
            registry=registry,
        )
        self._limits = Counter(
            "starpruner_limits_met",
            "Limits that statements met, by the limit's name and by what came of it: rejected, warned,"
            " would_reject (a dry run), or unknown.",
            ["limit", "result"],
            registry=registry,
        )
        self._logins = Counter(
            "starpruner_logins_refused",
            "Logins of clients and of the admin port's visitors that were refused, or not tried after too many"
            " wrong passwords (throttled).",
            ["door", "reason"],
            registry=registry,
        )
        for door, reason in (("clients", "refused"), ("admin", "refused"), ("admin", "throttled")):
            self._logins.labels(door, reason)
        self._reloads = Counter(
            "starpruner_config_reloads",
            "Reloads of the configuration, one of each process; a refused one has changed nothing.",
            ["result"],
            registry=registry,
        )
        self._reloaded_at = Gauge(
            "starpruner_config_reload_timestamp_seconds",
            "Time of the last reload of the configuration, of the start where there was none, by its result.",
            ["result"],
            registry=registry,
        )
        for result in ("applied", "refused"):
            self._reloads.labels(result)
            self._reloaded_at.labels(result)
        self._reloaded_at.labels("applied").set_to_current_time()
        build = Gauge("starpruner_build_info", "Versions; always 1.", ["version", "python"], registry=registry)
        build.labels(version("starpruner"), platform.python_version()).set(1)

    def login_refused(self, door: str, reason: str = "refused") -> None:
        """A client or a visitor of the admin port was not let in."""
        self._logins.labels(door, reason).inc()

    def reloaded(self, result: str) -> None:
        """The configuration was read anew: applied, or refused."""
        self._reloads.labels(result).inc()
        self._reloaded_at.labels(result).set_to_current_time()

    def decided(self, rewrite: Rewrite | None, skip: SkipReason | None, seconds: float) -> None:
        """A statement was decided about: it is rewritten, or stays original."""
        scans = rewrite.scans if rewrite is not None else ()
        narrowed = sum(scan.predicate is not None for scan in scans) if skip is None else 0
        grouped = sum(scan.is_grouped for scan in scans) if skip is None else 0
        self._statements.labels("rewritten" if narrowed or grouped else "original").inc()
        self._decisions.observe(seconds)
        self._narrowed.inc(narrowed)
        self._grouped.inc(grouped)
        self._unchanged.inc(len(scans) - narrowed - grouped)
        for files in (scan.files for scan in scans if skip is None and scan.files is not None):
            self._files.inc(files.total - files.kept)
            self._bytes.inc(files.total_bytes - files.kept_bytes)
        tried = {rule for scan in scans for rule in _rules_tried(scan)}
        self._count_rules(tried, "tried")
        self._count_rules(rewrite.rules if rewrite is not None and (narrowed or grouped) else (), "applied")
        for rule in tried:
            self._rules_s.labels(rule.value).inc(seconds)
        left = (scan.skip for scan in scans if skip is not None or not scan.is_grouped)
        for reason in (skip, *left):
            if reason is not None:
                self._skips.labels(_label(reason)).inc()

    def fell_back(self, rules: Iterable[Rule]) -> None:
        """A statement had gone out narrowed by these rules, and then its original was run after all."""
        self._count_rules(rules, "fell_back")

    def _count_rules(self, rules: Iterable[Rule], result: str) -> None:
        for rule in rules:
            self._rules.labels(rule.value, result).inc()

    def write_overtaken(self) -> None:
        """While a rewritten statement wrote, another write changed a table that its keys came from."""
        self._overtaken_writes.inc()

    def statement_ended(self, outcome: OutcomeKind, seconds: float, *, rewritten: bool) -> None:
        """A statement ended, which was sent rewritten or as the original."""
        self._ends.labels("rewritten" if rewritten else "original", _label(outcome)).observe(seconds)

    def key_query_answered(self, result: QueryResult) -> None:
        """A key query was answered, or was not."""
        outcome = _label(result.kind) if isinstance(result, QueryFailed) else "answered"
        self._key_queries.labels(outcome).observe(result.seconds)

    def keys_checked(self, verdict: Enum) -> None:
        """While a statement ran, its remembered keys were asked for again."""
        self._key_checks.labels(_label(verdict)).inc()

    def gate_decided(self, verdict: Enum) -> None:
        """The cost gate said whether a statement is worth its key queries."""
        self._gate.labels(_label(verdict)).inc()

    def limit_met(self, limit: str, result: Enum) -> None:
        """A statement met a limit on what it may read."""
        self._limits.labels(limit, _label(result)).inc()

    def shadow_compared(self, verdict: Enum) -> None:
        """A rewritten statement ran beside the original."""
        self._shadows.labels(_label(verdict)).inc()

    def watch_connections(self, count: Callable[[], float], limit: float) -> None:
        """From now on, `count` tells how many clients are connected."""
        self._watch("starpruner_connections_open", "Clients that are connected.", count)
        text = "Clients that may be connected, to all processes together."
        self._watch("starpruner_connections_max", text, lambda: limit)

    def watch_key_slots(self, taken: Callable[[], float], limit: float) -> None:
        """From now on, `taken` tells how many key queries run."""
        self._watch("starpruner_key_query_slots_taken", "Key queries that run.", taken)
        self._watch("starpruner_key_query_slots_max", "Key queries that may run at once.", lambda: limit)

    def watch_held_memory(self, held: Callable[[], float], limit: float) -> None:
        """From now on, `held` tells the memory that calls of clients take."""
        self._watch("starpruner_held_bytes", "Memory that calls of clients take.", held)
        text = "Memory that calls of clients may take; beyond it no client is read for a moment."
        self._watch("starpruner_held_bytes_max", text, lambda: limit)

    def watch_certificates(self, ends: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """From now on, `ends` tells when the certificate of each listener ends, in seconds since 1970."""
        self._watch_gauge(
            "starpruner_certificate_left_seconds",
            "Time until the certificate ends that a listener shows; below zero, it has ended.",
            lambda: [(listener, end - time.time()) for listener, end in ends()],
            "listener",
        )

    def watch_savings(self, saved: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """From now on, `saved` tells of the time that was saved lately, by how it is known."""
        text = (
            "Time saved in the last 24 hours, computed every minute at most: measured by originals, less what was"
            " spent in vain; estimated for others; and what was spent in vain."
        )
        self._watch_gauge("starpruner_saved_seconds", text, saved, "kind")

    def watch_backends(self, views: Callable[[], Iterable[BackendView]]) -> None:
        """From now on, `views` tells of the backends; there may be others the next time."""
        self._registry.register(_BackendSeries(views))

    def watch_metastore(self, metastore: Callable[[], MetastoreLimits]) -> None:
        """From now on, `metastore` tells for how many tables it is sent less; a reload may replace it."""
        text = "Tables of which the metastore is sent less now, because it refused a filter."
        self._watch("starpruner_metastore_tables_lowered", text, lambda: metastore().lowered_count)

    def watch_history(self, history: StatementCounts) -> None:
        """From now on, the history tells how many statements and sessions there are."""
        self._watch("starpruner_sessions_open", "Sessions that are open.", lambda: history.session_count)
        self._watch("starpruner_statements_running", "Statements that run.", lambda: history.running_count)
        text = "Partitions that finished statements did not read, where their list was at hand."
        self._watch_counter("starpruner_skipped_partitions", text, lambda: [("", history.partitions_spared)])
        text = "Statements that are missing from the history, by the reason."
        self._watch_counter("starpruner_history_lost", text, history.losses_by_reason, "reason")

    def watch_memory(self, shortages: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """From now on, `shortages` tells how often memory was short, by what was done."""
        text = (
            "Times that memory was short: a statement went on unanalysed, all clients were not read for a moment"
            " (paused), a call, a reply or a connection was refused, a long reply that comes wrapped waited."
        )
        self._watch_counter("starpruner_memory_short", text, shortages, "result")

    def watch_tracing(self, lost: Callable[[], float]) -> None:
        """From now on, `lost` tells of how many statements the spans did not reach the collector."""
        text = "Statements whose spans did not reach the collector of [tracing]."
        self._watch_counter("starpruner_traces_lost", text, lambda: [("", lost())])

    def watch_shared_lists(
        self, results: Callable[[], Iterable[tuple[str, float]]], is_away: Callable[[], bool]
    ) -> None:
        """From now on, these tell of the partition lists in HBase, and whether it is left alone."""
        text = (
            "Partition lists that replicas share in HBase: looked up (found, absent, late, invalid), loaded,"
            " scanned for EXPLAIN PARTITIONS, published or not (unpublished), dropped."
        )
        self._watch_counter("starpruner_shared_lists", text, results, "result")
        text = "Whether HBase is left alone for now, since it did not answer, or not in time."
        self._watch("starpruner_shared_lists_away", text, is_away)

    def watch_shared_lessons(self, results: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """From now on, this tells of the rows by which replicas tell one another what they have learned."""
        text = "Rows of the quarantine and of runs in HBase: written (told), read each time (learned, invalid)."
        self._watch_counter("starpruner_shared_lessons", text, results, "result")

    def watch_quarantine(self, quarantine: Quarantine) -> None:
        """From now on, the quarantine tells how many entries of each kind it has."""
        text = "Rules and statement fingerprints that are quarantined because they did harm."
        gauge = Gauge("starpruner_quarantined", text, ["kind"], registry=self._registry)
        for kind in QuarantineKind:
            gauge.labels(kind.value).set_function(partial(quarantine.count, kind))

    def _watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self._registry).set_function(value)

    def _watch_counter(
        self, name: str, text: str, counts: Callable[[], Iterable[tuple[str, float]]], label: str = ""
    ) -> None:
        self._registry.register(_Watched(CounterMetricFamily(name, text, labels=[label] * bool(label)), counts))

    def _watch_gauge(
        self, name: str, text: str, values: Callable[[], Iterable[tuple[str, float]]], label: str
    ) -> None:
        self._registry.register(_Watched(GaugeMetricFamily(name, text, labels=[label]), values))

    def exposition(self) -> bytes:
        """Everything, in the text format of `CONTENT_TYPE`."""
        return generate_latest(self._registry)


_BACKEND_GAUGES: Final[tuple[tuple[str, str, Callable[[BackendView], float]], ...]] = (
    ("connections", "Connections that are open, those of the proxy itself included.", lambda v: v.connections),
    ("connections_max", "Connections that may be open.", lambda v: v.connections_max),
    ("sessions", "Sessions over HTTP, which have no connection of their own.", lambda v: v.sessions),
    (
        "healthy",
        "Whether a backend takes new sessions, answers probes, and is not left alone.",
        lambda v: v.healthy,
    ),
    ("draining", "Whether a backend is given no new sessions.", lambda v: v.draining),
    ("probes_up", "Whether a backend answers probes.", lambda v: v.probes == "up"),
    (
        "breaker_open",
        "Whether a backend is left alone, but for a trial, because connections failed.",
        lambda v: v.breaker != "closed",
    ),
)


class _BackendSeries(Collector):
    """The series of the backends, as they are at each scrape."""

    def __init__(self, views: Callable[[], Iterable[BackendView]]) -> None:
        self._views = views

    def collect(self) -> Iterator[Metric]:
        views = tuple(self._views())
        for name, text, value in _BACKEND_GAUGES:
            gauge = GaugeMetricFamily(f"starpruner_backend_{name}", text, labels=["backend"])
            for view in views:
                gauge.add_metric([view.name], value(view))
            yield gauge
        failures = CounterMetricFamily(
            "starpruner_backend_failures", "Connections and probes that a backend failed.", labels=["backend"]
        )
        for view in views:
            failures.add_metric([view.name], view.failures)
        yield failures


class _Watched(Collector):
    """A metric that something else counts, by one label or none."""

    def __init__(
        self,
        family: CounterMetricFamily | GaugeMetricFamily,
        values: Callable[[], Iterable[tuple[str, float]]],
    ) -> None:
        self._family = family
        self._values = values

    def collect(self) -> Iterator[Metric]:
        self._family.samples = []
        for label, value in self._values():
            self._family.add_metric([label] if label else [], value)
        yield self._family


def _rules_tried(scan: ScanOutcome) -> Iterable[Rule]:
    return scan.parts.union(*(reducer.rules for reducer, _ in scan.reducers))


def _label(code: Enum) -> str:
    return code.name.lower()
