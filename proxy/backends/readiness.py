"""The answer to GET /readyz: whether a client that connects now would find a backend for its session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final

from proxy.backends.health_checks import Probe
from proxy.backends.pool import BackendPool
from proxy.upstream.errors import OwnLoginError

# Balancers and Kubernetes ask several times a second at most. Spark logs each connection that does not log in.
_REMEMBERED_S: Final = 5.0


class Readiness:
    """Asks the health checks, or where there are none a probe, whose result is used for five seconds."""

    def __init__(
        self,
        backends: BackendPool,
        is_stopping: Callable[[], bool] = lambda: False,
        probe: Probe | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._backends = backends
        self._is_stopping = is_stopping
        self._probe = probe
        self._clock = clock
        self._probed_at = -inf
        self._found: str | None = None
        self._probing = asyncio.Lock()

    async def why_not_ready(self) -> str | None:
        """Return why a client should not come here, or None."""
        if self._is_stopping():
            return "The proxy is stopping."
        if not self._backends.is_any_healthy:
            return "No backend is healthy; GET /backends says why."
        return None if self._probe is None else await self._probed(self._probe)

    async def _probed(self, probe: Probe) -> str | None:
        async with self._probing:
            if self._clock() - self._probed_at >= _REMEMBERED_S:
                self._found = await self._why_none_answers(probe)
                self._probed_at = self._clock()
        return self._found

    async def _why_none_answers(self, probe: Probe) -> str | None:
        """Probe one backend after the other, as many as a client would try; None if one answers."""
        reasons = []
        for backend in self._backends.configured:
            if not backend.takes_sessions:
                continue
            try:
                reason = await probe(backend.member.address)
            except OwnLoginError as error:
                reason = str(error)
            if reason is None:
                return None
            reasons.append(f"{backend.member.name}: {reason}")
        return f"No backend answers: {'; '.join(reasons)}."
