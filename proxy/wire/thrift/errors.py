"""What can go wrong on the wire, told apart by who is at fault."""

from __future__ import annotations


class RemoteProtocolError(Exception):
    """The peer sent bytes that break the protocol. Its connection is of no more use."""


class LocalProtocolError(Exception):
    """Our own code asked for something that the connection's state does not allow: a bug of ours."""


class IncompleteError(Exception):
    """The bytes so far are well formed, but the message goes on."""
