"""The table of metrics in docs/observability.md, made from the code: `python -m tools.metrics_table`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from proxy.backends.backend import BackendView
from proxy.config.serving import HistorySection
from proxy.history.history import History
from proxy.limits.limits import Result
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.key_check import CheckVerdict
from proxy.operations.query import FailureKind, QueryFailed, Rows
from proxy.session.feedback.cost_model import GateVerdict
from proxy.session.feedback.metastore_limits import MetastoreLimits
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.layout.hbase_store import SharedListResult
from proxy.session.metrics import Metrics
from proxy.session.shadow.compare import ShadowVerdict
from proxy.session.sharing.lesson_exchange import LessonResult
from rewriter import SkipReason

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "observability.md"
COMMAND: Final = "python -m tools.metrics_table"
BEGIN: Final = f"<!-- metrics: made by {COMMAND} -->"
END: Final = "<!-- end of metrics -->"
# Values of a label that are listed one by one; there are more reasons and rules, which have a page.
_VALUES_MAX: Final = 10
# Labels whose values are those of a configuration or a machine.
_OPEN: Final = ("backend", "listener", "limit", "version", "python")


@dataclass(frozen=True)
class MetricOfProxy:
    """A metric with its labels, and the values that each may have."""

    name: str
    kind: str
    text: str
    labels: dict[str, frozenset[str]]

    @property
    def series(self) -> frozenset[str]:
        """The names of its series, by which a query asks for it."""
        ends = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(self.kind, ("",))
        return frozenset(f"{self.name}{end}" for end in ends)


def metrics() -> list[MetricOfProxy]:
    """The metrics of a proxy to which everything has happened."""
    found = []
    for family in text_string_to_metric_families(_of_everything().exposition().decode()):
        if family.name.startswith("starpruner_") and not family.name.endswith("_created"):
            names = sorted({name for sample in family.samples for name in sample.labels} - {"le"})
            values = {
                name: frozenset(one.labels[name] for one in family.samples if name in one.labels) for name in names
            }
            found.append(MetricOfProxy(family.name, family.type, family.documentation, values))
    return found


def _of_everything() -> Metrics:
    told = Metrics()
    for reason in SkipReason:
        told.decided(None, reason, 0.0)
    # One that is refused is not timed.
    for kind in set(OutcomeKind) - {OutcomeKind.REFUSED}:
        for is_rewritten in (False, True):
            told.statement_ended(kind, 0.0, rewritten=is_rewritten)
    told.key_query_answered(Rows((), (), 0.0))
    for failure in FailureKind:
        told.key_query_answered(QueryFailed(failure, "", 0.0))
    for check in CheckVerdict:
        told.keys_checked(check)
    for verdict in GateVerdict:
        told.gate_decided(verdict)
    for result in Result:
        told.limit_met("analysts", result)
    for shadow in ShadowVerdict:
        told.shadow_compared(shadow)
    told.watch_connections(lambda: 0, 1)
    told.watch_key_slots(lambda: 0, 1)
    told.watch_held_memory(lambda: 0, 1)
    told.watch_certificates(lambda: [("0.0.0.0:10000", 0)])
    told.watch_savings(lambda: [("measured", 0), ("estimated", 0), ("spent", 0)])
    backend = BackendView(
        "spark-1:10000",
        healthy=True,
        draining=False,
        probes="up",
        breaker="closed",
        connections=0,
        connections_max=1,
        sessions=0,
        weight=1,
        failures=0,
        last_failures=(),
    )
    told.watch_backends(lambda: [backend])
    told.watch_history(History(HistorySection(), None))
    told.watch_memory(lambda: [("unanalysed", 0), ("waited", 0), ("paused", 0), ("refused", 0)])
    told.watch_tracing(lambda: 0)
    told.watch_shared_lists(lambda: [(result.value, 0) for result in SharedListResult], lambda: False)
    told.watch_shared_lessons(lambda: [(result.value, 0) for result in LessonResult])
    metastore = MetastoreLimits("derby", 1.0, lambda: 0.0)
    told.watch_metastore(lambda: metastore)
    told.watch_quarantine(Quarantine(1.0, lambda: 0.0))
    return told


def page(now: str) -> str:
    """The page with the table as the code has it."""
    before, _, rest = now.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(["| metric | labels | meaning |", "|---|---|---|", *_rows()])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def _rows() -> Iterator[str]:
    for metric in metrics():
        name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
        labels = "; ".join(_label(name, values) for name, values in metric.labels.items())
        kind = " Histogram." if metric.kind == "histogram" else ""
        yield f"| `{name}` | {labels} | {metric.text}{kind} |"


def _label(name: str, values: frozenset[str]) -> str:
    if name in _OPEN or len(values) > _VALUES_MAX:
        return f"`{name}`"
    return f"`{name}`: {', '.join(sorted(values))}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
