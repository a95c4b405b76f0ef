"""The answer to GET /readyz: whether a client that connects now would find a healthy backend. Pure."""

from __future__ import annotations

from collections.abc import Callable

from proxy.backends.pool import NAMED_MAX, BackendPool


class Readiness:
    """Says what the pool knows, as the pages and the metrics do."""

    def __init__(self, backends: BackendPool, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._backends = backends
        self._is_stopping = is_stopping

    def why_not_ready(self) -> str | None:
        """Return why a client should not come here, or None."""
        if self._is_stopping():
            return "The proxy is stopping."
        if self._backends.is_any_healthy:
            return None
        views = [view for view in self._backends.views() if not view.draining and view.last_failures]
        if not views:
            return f"No backend takes sessions: {self._backends.why_no_room()}."
        told = "; ".join(f"{view.name}: {view.last_failures[0].reason}" for view in views[:NAMED_MAX])
        return f"No backend is healthy: {told}."
