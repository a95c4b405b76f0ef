"""The interface between clients over HTTP and their backends, which speak HTTP or the binary protocol.

`http_upstream` and `binary_upstream` implement it; `listeners` chooses between them, and no other module knows
which.
"""

from __future__ import annotations

from typing import Protocol

from proxy.backends.backend import Backend
from proxy.upstream.reply import Sender
from proxy.wire.hs2.calls import SessionHandle


class Upstream(Sender, Protocol):
    """One backend, asked in the name of one client."""

    @property
    def backend(self) -> Backend:
        """The backend."""
        ...

    @property
    def owner(self) -> str | None:
        """The owner of sessions that are opened here; None where nothing may be asked in that name."""
        ...

    @property
    def name(self) -> str:
        """Equal for calls that the same client may have made."""
        ...

    @property
    def login(self) -> str | None:
        """The user that the backend takes the client for; empty where it has not said, None without a login."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The names that the client gives itself; none where it gives none, several where that is unclear."""
        ...

    @property
    def own_login(self) -> str:
        """The full name of the login by which the proxy can open the same sessions; empty where it cannot."""
        ...

    @property
    def who(self) -> str:
        """The names that the client gives itself, and those of the users it acts for; empty if it gives none."""
        ...

    @property
    def credentials(self) -> bytes | None:
        """The name and the password, as PLAIN has them, perhaps with tickets. A secret."""
        ...

    def opened(self, session: SessionHandle) -> None:
        """The last call has opened this session."""
        ...

    def closed(self, session: SessionHandle) -> None:
        """The client closes the session."""
        ...


class CallClient(Protocol):
    """The client of a call. Each call may go to another backend."""

    @property
    def marks(self) -> frozenset[str]:
        """The marks of the backends whose cookies it has."""
        ...

    def at(self, backend: Backend) -> Upstream:
        """An upstream to that backend, which is asked as this client."""
        ...


class Upstreams(Protocol):
    """The backends of a process, all of one kind, as its clients over HTTP reach them."""

    @property
    def names_user(self) -> bool:
        """True if the backends ask nobody for a login, and believe the name in the call that opens a session."""
        ...

    @property
    def takes_do_as(self) -> bool:
        """True if a request may name another user to act for, as the query `doAs`."""
        ...

    @property
    def has_lasting_sessions(self) -> bool:
        """True if a session goes on without the connection that opened it, and so counts as load by itself."""
        ...

    def client(self, query: str, headers: list[tuple[str, str]], proven: bytes | None) -> CallClient:
        """The client of a request with this query, these headers, and this login where the proxy has taken it."""
        ...

    async def start(self) -> None:
        """Make ready for calls."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...
