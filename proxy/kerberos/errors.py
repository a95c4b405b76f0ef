"""Errors of Kerberos logins. Each message is a sentence for the one who logs in, without keys or tokens."""

from __future__ import annotations


class KerberosError(Exception):
    """A login failed, or a message does not belong to it."""


class KerberosMissingError(KerberosError):
    """The extra starpruner[kerberos] is not installed, or MIT's library is not there."""
