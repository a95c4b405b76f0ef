"""Key checks: asks for remembered keys again, on a second connection, while the statement runs that uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from proxy.backends.pool import Lease
from proxy.config.address import Address
from proxy.frontend.background_runner import BackgroundRunner
from proxy.kerberos.delegation import DelegatedCredentials
from proxy.operations.key_check import CheckVerdict, KeyCheck, KeyTerms
from proxy.wire.hs2.calls import SessionHandle

# Keys are asked for first for this long after a backend refused a second connection: it may have no room for one.
ASKING_FIRST_S: Final = 600.0


class KeyChecks:
    """The checks of a process that are under way."""

    def __init__(self, runner: BackgroundRunner, clock: Callable[[], float]) -> None:
        """Take a clock that never goes back, in seconds."""
        self._runner = runner
        self._clock = clock
        self._refused_until: dict[tuple[Address, bytes], float] = {}

    def has_room_at(self, address: Address, credentials: bytes | None = None) -> bool:
        """True if a check may be started at a backend: there is room, and it has not refused one lately.

        A login by a client's own tickets fails once they expire, so such a refusal counts for that client alone.
        """
        return (
            self._runner.has_room and self._refused_until.get(_login(address, credentials), 0.0) <= self._clock()
        )

    def terms(self, unconfirmed: KeyCheck | None, address: Address | None, credentials: bytes | None) -> KeyTerms:
        """The terms of a decision: the statement's second one if a check did not confirm the keys of the first.

        None stands for a backend that is not connected, and for a login that the proxy has not seen.
        """
        if unconfirmed is not None:
            return KeyTerms(asked_since=unconfirmed.began_at)
        can_check = address is not None and credentials is not None and self.has_room_at(address, credentials)
        return KeyTerms(may_be_checked=can_check)

    def start(
        self, session: SessionHandle, credentials: bytes | None, check: KeyCheck, clients: Lease | None
    ) -> None:
        """Run a check in a session whose client logged in by that PLAIN response and has that lease.

        The check is settled in any case, by its deadline at the latest.
        """
        if credentials is None or clients is None:
            check.settle(CheckVerdict.NOT_ASKED)
            return
        address = clients.address
        late = asyncio.get_running_loop().call_later(check.deadline_s, check.settle, CheckVerdict.UNANSWERED)

        def ended(verdict: CheckVerdict | None) -> None:
            late.cancel()
            check.settle(verdict or CheckVerdict.NOT_ASKED)

        refused = partial(self.ask_first_at, address, credentials)
        if not self._runner.start(
            session, credentials, check.work, clients, ended=ended, refused=refused, within_s=check.deadline_s
        ):
            late.cancel()
            if self._runner.has_room:
                # The backend has no connection left: each statement would be sent twice.
                refused()
            check.settle(CheckVerdict.NOT_ASKED)

    def ask_first_at(self, address: Address, credentials: bytes | None = None) -> None:
        """Start no check for a while at a backend without room for one more connection, or of this client."""
        now = self._clock()
        lasting = {login: until for login, until in self._refused_until.items() if until > now}
        self._refused_until = {**lasting, _login(address, credentials): now + ASKING_FIRST_S}

    def sessions_closed(self, sessions: Collection[SessionHandle]) -> None:
        """End the checks of sessions that have ended."""
        self._runner.sessions_closed(sessions)

    async def close(self) -> None:
        """End everything, and let the backends know."""
        await self._runner.close()


def _login(address: Address, credentials: bytes | None) -> tuple[Address, bytes]:
    """The login whose refusals count together: a client with tickets, or all clients of a backend."""
    return address, bytes(credentials) if isinstance(credentials, DelegatedCredentials) else b""
