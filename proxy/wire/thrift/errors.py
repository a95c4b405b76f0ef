"""Errors on the wire, distinguished by who is at fault: the peer, our own code, or nobody (more bytes to come)."""

from __future__ import annotations


class RemoteProtocolError(Exception):
    """The peer sent bytes that break the protocol. Its connection cannot be used any more."""


class MessageTooLongError(RemoteProtocolError):
    """The peer announced, or sent, a longer message than is accepted."""


class LocalProtocolError(Exception):
    """Our own code asked for something that the connection's state does not allow: a bug in the proxy."""


class IncompleteError(Exception):
    """The bytes so far are well formed, but the message is incomplete."""
