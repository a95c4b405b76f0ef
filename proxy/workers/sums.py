"""Adds up what several processes say on /metrics, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

# Of these the whole is not the sum: when the first one began, and what each of them may open.
_LEAST_OF: Final = ("_created", "process_start_time_seconds", "process_max_fds")


class _Summed(Collector):
    def __init__(self, expositions: Iterable[bytes]) -> None:
        self._families: dict[str, Metric] = {}
        self._values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for exposition in expositions:
            for family in text_string_to_metric_families(exposition.decode()):
                self._add(family)

    def collect(self) -> Iterable[Metric]:
        for name, family in self._families.items():
            metric = Metric(name, family.documentation, family.type)
            for (sample, labels), value in self._values[name].items():
                metric.add_sample(sample, dict(labels), value)
            yield metric

    def _add(self, family: Metric) -> None:
        self._families.setdefault(family.name, family)
        values = self._values.setdefault(family.name, {})
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            before = values.get(key)
            if before is None:
                values[key] = sample.value
            elif sample.name.endswith(_LEAST_OF):
                values[key] = min(before, sample.value)
            else:
                values[key] = before + sample.value


def summed(expositions: Iterable[bytes]) -> bytes:
    """The same families, with the samples of equal names and labels added up."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Summed(expositions))
    return generate_latest(registry)
