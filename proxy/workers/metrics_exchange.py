"""Exchange of metrics among workers: each answers for its own counters, and any of them returns the sum.

The sum is in the text format of Prometheus, as /metrics shows it for several processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector, web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from proxy.workers.worker_slot import WorkerSlot

# A worker answers within milliseconds unless it is overloaded; then its counters are left out of this sum.
_ANSWER_WITHIN_S: Final = 2.0
# The counters of one worker take 20 KB, and 70 KB once everything has happened.
_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
# Metrics to take the minimum of: the start of the first process, the open files that each may have, whether every
# worker finds a backend healthy, and the oldest certificate.
_LEAST_OF: Final = (
    *("_created", "process_start_time_seconds", "process_max_fds", "_healthy", "_probes_up"),
    "_certificate_left_seconds",
)
# Metrics to take the maximum of: whether any worker leaves a backend or HBase alone, what holds for all workers
# together, and the last reload.
_MOST_OF: Final = (
    *("_draining", "_breaker_open", "_lists_away", "starpruner_connections_max", "_build_info"),
    "_reload_timestamp_seconds",
)

log = logging.getLogger(__name__)


class MetricsExchange:
    """Answers and asks the other workers, on Unix sockets in the directory that they share."""

    def __init__(self, worker_slot: WorkerSlot, own: Callable[[], bytes]) -> None:
        self._worker_slot = worker_slot
        self._own = own
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Start to answer the other workers."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=self._own())

        application = web.Application()
        application.add_routes([web.get("/metrics", answer)])
        self._runner = web.AppRunner(application, handle_signals=False, access_log=None)
        await self._runner.setup()
        path = self._worker_slot.socket_path(self._worker_slot.number)
        # The socket of the worker that had this slot before.
        path.unlink(missing_ok=True)
        await web.UnixSite(self._runner, path).start()

    async def stop(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def exposition(self) -> bytes:
        """Return the counters of all workers, added up."""
        others = [slot for slot in range(self._worker_slot.count) if slot != self._worker_slot.number]
        answers = await asyncio.gather(*(self._ask(slot) for slot in others))
        return summed([self._own(), *(answer for answer in answers if answer is not None)])

    async def _ask(self, slot: int) -> bytes | None:
        connector = UnixConnector(str(self._worker_slot.socket_path(slot)))
        timeout = ClientTimeout(total=_ANSWER_WITHIN_S)
        try:
            async with (
                ClientSession(connector=connector, timeout=timeout) as session,
                session.get("http://worker/metrics") as answer,
            ):
                return await answer.content.read(_ANSWER_BYTES_MAX)
        except (ClientError, OSError, TimeoutError) as error:
            log.warning("the counters of worker %d are left out: %s", slot, type(error).__name__)
            return None


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
            elif sample.name.endswith(_MOST_OF):
                values[key] = max(before, sample.value)
            else:
                values[key] = before + sample.value


def summed(expositions: Iterable[bytes]) -> bytes:
    """Return the families of all expositions, with the samples of equal names and labels added up."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Summed(expositions))
    return generate_latest(registry)
