"""Cancels statements of clients for an administrator, each on a connection that logs in as the client did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from proxy.frontend.own_session import Access
from proxy.frontend.rewrite_service import tell_outcome
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call, Reply
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.http_link import link_to
from proxy.wire.hs2.calls import CANCEL_OPERATION, SessionHandle, encode_operation_call
from proxy.wire.hs2.replies import decode_status_only, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError

log = logging.getLogger(__name__)

# Time for the login, and for the call: an administrator waits, and a backend in trouble is slow to let anybody in.
CANCEL_S: Final = 30.0


class StatementCanceller:
    """Cancels the statements of a process. Used by its event loop."""

    def __init__(
        self,
        tracked_statements: TrackedStatements,
        access_of: Callable[[SessionHandle], Access | None],
        dialer: Dialer,
    ) -> None:
        """`access_of` returns the login of a session's client; None where that is not known."""
        self._tracked_statements = tracked_statements
        self._access_of = access_of
        self._dialer = dialer

    def cancellable(self) -> frozenset[str]:
        """The ids of the statements that can be cancelled now."""
        running = self._tracked_statements.running().items()
        return frozenset(identifier for identifier, one in running if self._access_of(one.session) is not None)

    async def cancel(self, statement_id: str, by: str) -> bool:
        """Cancel a statement; False if it is none that can be cancelled.

        `by` names the administrator in the history. Raises BackendError where the backend does not say that it
        has done so: the statement may go on, and can be cancelled once more.
        """
        tracked = self._tracked_statements.running().get(statement_id)
        access = None if tracked is None else self._access_of(tracked.session)
        if tracked is None or access is None or not await self._sent(tracked, access, by):
            return False
        log.warning("statement %s was cancelled by %s", statement_id, by)
        # Its client may have been told of its end meanwhile.
        if tracked.is_running:
            for event in tracked.stopped(asyncio.get_running_loop().time()):
                tell_outcome(event.dispatch, event.outcome, by)
        return True

    async def _sent(self, tracked: TrackedStatement, access: Access, by: str) -> bool:
        """Have the backend cancel it; False where it ends, or falls back, while the proxy logs in."""
        lease = access.lease()
        if lease is None:
            raise BackendError("its backend has no room for a connection of the proxy's own; try again")
        try:
            link = link_to(lease.address, self._dialer, CANCEL_S)
            await link.open(access.credentials, "the statement's client")
            try:
                if tracked.operation is None or not tracked.is_running:
                    return False
                # Set before the call is sent: else the cancelled text fails, and the original runs in its place.
                tracked.cancelled_by = by
                message = encode_operation_call(CANCEL_OPERATION, 1, tracked.operation)
                refused = _refusal(await link.ask(Call(CANCEL_OPERATION, 1, message, CONTROL_REPLY_BYTES_MAX)))
            finally:
                link.close()
        finally:
            lease.release()
        if refused is not None:
            raise BackendError(f"the backend {lease.address} did not cancel it: {refused}")
        return True


def _refusal(raw: Reply) -> str | None:
    """The server's words where it has not cancelled; None where it has."""
    try:
        status = decode_status_only(open_reply(raw or b"", expect_reply(raw or b"", CANCEL_OPERATION, 1)))
    except (RemoteProtocolError, IncompleteError) as error:
        return str(error) or "its reply cannot be read"
    return None if status.ok else status.message or "it gave no reason"
