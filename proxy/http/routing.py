"""Routes each call of a client over HTTP to a backend. Pure.

Over HTTP each call may go to another backend. A call about a session or an operation goes to the backend of that.
A session is opened on the least loaded backend, or on one whose cookies the client has.
"""

from __future__ import annotations

from contextlib import suppress

from proxy.access.handle_owners import HandleOwners
from proxy.backends.backend import Backend
from proxy.backends.pool import TRIES_MAX, BackendPool
from proxy.config.address import Address
from proxy.upstream.http_cookies import mark_of_backend
from proxy.wire.hs2.calls import OPEN_SESSION
from proxy.wire.hs2.handles import NamedHandle, handle_named_by
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message


class Routes:
    """The routes of a process to its backends."""

    def __init__(self, backends: BackendPool, handles: HandleOwners) -> None:
        self._backends = backends
        self._handles = handles

    def of(self, message: Message, marks: frozenset[str]) -> Route:
        """The route of a call, of a client that has cookies of the backends with these marks."""
        named = _named(message)
        if named is None:
            return self.anywhere(marks)
        home = self._home(named) or self._marked(marks)
        # Another backend than this one would not know the handle in the call.
        return Route(self._backends, home, tries_max=1)

    def anywhere(self, marks: frozenset[str] = frozenset()) -> Route:
        """The route of a call that any backend can answer."""
        marked = self._marked(marks)
        takes_it = marked is not None and marked.takes_sessions and marked.is_eligible
        return Route(self._backends, marked if takes_it else None)

    def _home(self, named: NamedHandle) -> Backend | None:
        """The backend of a handle; None if it is gone: any other may then answer that it has no such handle."""
        handle_owner = self._handles.find_owner(named.identifier)
        return None if handle_owner is None else self._backends.backend_named(handle_owner.backend)

    def _marked(self, marks: frozenset[str]) -> Backend | None:
        if not marks:
            return None
        return next((one for one in self._backends.configured if mark_of_backend(one.member.name) in marks), None)


class Route:
    """The backends that one call may go to, best first."""

    def __init__(self, backends: BackendPool, first: Backend | None, *, tries_max: int = TRIES_MAX) -> None:
        self._backends = backends
        self._first = first
        self._tries_max = tries_max
        self._failures: dict[Address, str] = {}

    def next(self) -> Backend | None:
        """The next backend; None once the client has to be refused."""
        if len(self._failures) >= self._tries_max:
            return None
        first, self._first = self._first, None
        return first or self._backends.choose(tried=frozenset(self._failures))

    def failed(self, backend: Backend, reason: str) -> None:
        """Count a backend that could not be reached."""
        self._failures[backend.member.address] = reason

    @property
    def reason(self) -> str:
        """The reason why no backend was found, for the client."""
        if not self._failures:
            return f"cannot reach the backend {self._backends.display_name}: {self._backends.why_no_room()}"
        return "; ".join(self._failures.values())


def _named(message: Message) -> NamedHandle | None:
    """The handle in a call. If it cannot be read, any backend may say so."""
    if message.header.name == OPEN_SESSION:
        return None
    with suppress(RemoteProtocolError, IncompleteError):
        return handle_named_by(message)
    return None
