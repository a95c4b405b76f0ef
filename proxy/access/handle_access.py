"""Access of one client to sessions and operations: its own user's, and no other user's.

The proxy overwrites another user's handle in a call, in place and at equal length, and forwards the call, which
then names no handle at all. The server itself then answers "Invalid SessionHandle" or the like, in the form that
the call needs and in the order of calls. The other user's handle never reaches the server.
"""

from __future__ import annotations

from typing import Final

from proxy.access.handle_owners import HandleKind, HandleOwner, HandleOwners, UserDigest
from proxy.wire.hs2.calls import OPEN_SESSION
from proxy.wire.hs2.handles import HandleId, handle_id_of, handle_named_by
from proxy.wire.thrift.messages import Message

# Calls that open an operation. The proxy tracks only the owner of such an operation.
CATALOG_CALLS: Final = frozenset(
    """
    GetTypeInfo GetCatalogs GetSchemas GetTables GetTableTypes GetColumns GetFunctions GetPrimaryKeys
    GetCrossReference
    """.split()
)


class HandleAccess:
    """Checks the handles in one client's calls. Before the login it admits no known handle, and records none."""

    def __init__(self, handles: HandleOwners, backend_name: str, *, passes_unknown: bool = True) -> None:
        self._handles = handles
        # The backend that gives out the handles opened from now on.
        self.backend_name = backend_name
        # True if a client may use a handle that this proxy has never seen, as it may without the proxy.
        self._passes_unknown = passes_unknown
        self._owner: UserDigest | None = None

    @property
    def has_login(self) -> bool:
        """True if the client has logged in, so that its user is known."""
        return self._owner is not None

    def user_logged_in(self, user: bytes) -> None:
        """Note that the backend has accepted the client as that user; empty if it asks for no name."""
        self._owner = self._handles.digests.user_digest(user)

    def replacement_for(self, message: Message) -> Message | None:
        """Return the message to send instead of one with a foreign handle, or None if it may pass unchanged.

        Raises RemoteProtocolError or IncompleteError if the message cannot be read.
        """
        if message.header.name == OPEN_SESSION:
            return None
        named = handle_named_by(message)
        if named is None or self._may_use(named.identifier):
            return None
        return named.with_handle_overwritten(message)

    def other_backend_of(self, message: Message) -> str | None:
        """Return the other backend of the session or operation that the call names, if it is the user's own."""
        named = None if message.header.name == OPEN_SESSION else handle_named_by(message)
        handle_owner = None if named is None else self._handles.find_owner(named.identifier)
        if handle_owner is None or handle_owner.owner != self._owner or handle_owner.backend == self.backend_name:
            return None
        return handle_owner.backend

    def handle_opened(self, kind: HandleKind, handle: bytes) -> None:
        """Note that the backend has given this client a handle."""
        identifier = handle_id_of(handle)
        if identifier is not None and self._owner is not None:
            self._handles.handle_opened(kind, identifier, HandleOwner(self._owner, self.backend_name))

    def handle_closed(self, message: Message) -> None:
        """Note that the client closes the session or operation that its call names."""
        named = handle_named_by(message)
        if named is not None:
            self._handles.handles_closed([named.identifier])

    def _may_use(self, identifier: HandleId) -> bool:
        handle_owner = self._handles.find_owner(identifier)
        return self._passes_unknown if handle_owner is None else handle_owner.owner == self._owner
