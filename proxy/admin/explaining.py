"""One explain request, answered in a backend session of its own that is opened as the caller."""

from __future__ import annotations

import msgspec

from proxy.client import BackendClient
from proxy.config import Config, address
from proxy.explain import ExplainView, view
from proxy.session import Session
from proxy.shared import Shared

# Who asks, and with which password, where nobody is named: as beeline does without -n and -p. PLAIN refuses
# an empty password before the backend sees it.
ANONYMOUS = "anonymous"


class ExplainRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /explain."""

    sql: str
    database: str | None = None
    run_key_queries: bool = True


async def ask(config: Config, request: ExplainRequest, user: str, password: str, shared: Shared) -> ExplainView:
    """Explain a statement as the user would get it. Raises BackendError."""
    backend = address(config.proxy.backend)
    session = Session(shared)
    async with BackendClient.connect(
        backend.host,
        backend.port,
        user,
        password,
        database=request.database,
        upstream=config.backend.to_upstream(),
        connect_timeout_s=config.proxy.connect_timeout_s,
    ) as client:
        decision = await client.drive(session.explain(request.sql, run_key_queries=request.run_key_queries))
    return view(decision)
