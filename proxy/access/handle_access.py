"""Keeps a client from the sessions and operations of other users, whatever call names them.

A call that names one goes on about a handle that nobody has, in the same place and of the same length. So the
server itself answers it, in the shape of that call and in its turn, and in the words that it has for a handle
that does not exist. The handle that the client has got hold of never reaches the server.
"""

from __future__ import annotations

from typing import Final

from proxy.access.handle_owners import HandleKind, HandleOwner, HandleOwners, Owner
from proxy.wire.hs2.calls import OPEN_SESSION
from proxy.wire.hs2.handles import HandleId, identifier_in, named_by
from proxy.wire.thrift.messages import Message

# Calls that answer with an operation of which nothing but its owner has to be known.
CATALOG_CALLS: Final = frozenset(
    """
    GetTypeInfo GetCatalogs GetSchemas GetTables GetTableTypes GetColumns GetFunctions GetPrimaryKeys
    GetCrossReference
    """.split()
)


class HandleAccess:
    """Stands before one client connection. Until somebody has logged in, nothing is let through or kept."""

    def __init__(self, handles: HandleOwners, backend_name: str, *, passes_unknown: bool = True) -> None:
        self._handles = handles
        # The backend that gives out what is opened from now on.
        self.backend_name = backend_name
        # Whether a handle that this proxy has never seen may be used by whoever has it, as without us.
        self._passes_unknown = passes_unknown
        self._owner: Owner | None = None

    @property
    def is_on(self) -> bool:
        """Whether it is known who the client is."""
        return self._owner is not None

    def logged_in(self, user: bytes) -> None:
        """The backend has accepted the client as that user; empty where it asks for no name."""
        self._owner = self._handles.digests.owner(user)

    def admitted(self, message: Message) -> Message | None:
        """The message to send in the place of one that may not be sent as it is, or None where it may.

        Raises RemoteProtocolError or IncompleteError where it cannot be read.
        """
        if message.header.name == OPEN_SESSION:
            return None
        named = named_by(message)
        if named is None or self._may_use(named.identifier):
            return None
        return named.spoiled(message)

    def elsewhere(self, message: Message) -> str | None:
        """The backend that has what the client's call names, where that is another one than this."""
        named = None if message.header.name == OPEN_SESSION else named_by(message)
        handle_owner = None if named is None else self._handles.find(named.identifier)
        if handle_owner is None or handle_owner.owner != self._owner or handle_owner.backend == self.backend_name:
            return None
        return handle_owner.backend

    def opened(self, kind: HandleKind, handle: bytes) -> None:
        """The backend has given this client a handle."""
        identifier = identifier_in(handle)
        if identifier is not None and self._owner is not None:
            self._handles.opened(kind, identifier, HandleOwner(self._owner, self.backend_name))

    def closed(self, message: Message) -> None:
        """The client closes what its call names."""
        named = named_by(message)
        if named is not None:
            self._handles.closed([named.identifier])

    def _may_use(self, identifier: HandleId) -> bool:
        handle_owner = self._handles.find(identifier)
        return self._passes_unknown if handle_owner is None else handle_owner.owner == self._owner
