"""Counters of a running proxy, by GET /metrics on its admin port."""

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

# The proxy answers from memory; only a machine that hangs takes as long.
_SECONDS_MAX = 60

# A counter's name and its labels as Prometheus writes them, such as `starpruner_scans_total{outcome="narrowed"}`.
Counts: TypeAlias = dict[str, float]

_NARROWED = 'starpruner_scans_total{outcome="narrowed"}'
_REWRITTEN = 'starpruner_statements_total{outcome="rewritten"}'
_KEY_QUERIES = "starpruner_key_query_seconds_count"


@dataclass(frozen=True)
class ProxyCounters:
    """The counters of one proxy."""

    admin_url: str

    def now(self) -> Counts:
        """Each counter and each histogram's count of the proxy's own."""
        with urlopen(f"{self.admin_url}/metrics", timeout=_SECONDS_MAX) as answer:
            return counts(answer.read().decode())

    def narrowed_scans(self) -> int:
        """The scans that were narrowed until now."""
        return int(self.now().get(_NARROWED, 0))


def counts(exposition: str) -> Counts:
    """The counters in a text of Prometheus."""
    found: Counts = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name.startswith("starpruner_") and sample.name.endswith(("_total", "_count")):
                labels = ",".join(f'{name}="{text}"' for name, text in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def grown(before: Counts, after: Counts) -> Counts:
    """The counters that grew, and by how much."""
    growth = {name: value - before.get(name, 0) for name, value in after.items()}
    return {name: value for name, value in growth.items() if value > 0}


def added(parts: list[Counts]) -> Counts:
    """The growth in several periods together."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def rewritten_statements(growth: Counts) -> int:
    """The statements of which a scan was narrowed."""
    return int(growth.get(_REWRITTEN, 0))


def key_queries(growth: Counts) -> int:
    """The key queries that were asked, with whatever outcome."""
    return int(sum(value for name, value in growth.items() if name.startswith(_KEY_QUERIES)))
