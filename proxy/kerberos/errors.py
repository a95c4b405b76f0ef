"""Errors of Kerberos logins. Each message is a sentence for the log, without keys or tokens."""

from __future__ import annotations

from typing import Final

# A client whose login fails is told only this: it is not known yet, and reasons name files, realms and KDCs.
LOGIN_FAILED: Final = "the login by Kerberos failed; the proxy's log says why"


class KerberosError(Exception):
    """A login failed, or a message does not belong to it."""


class PeerRefusedError(KerberosError):
    """The other side refused our login. Its key may have changed since our ticket was made."""


class LoginsBusyError(KerberosError):
    """There are too many logins at once. The client may read this message."""


class KerberosMissingError(KerberosError):
    """The extra starpruner[kerberos] is not installed, or MIT's library is not there."""


def sentence_for_client(error: KerberosError) -> str:
    """Return the words about a failed login that its client may read."""
    return str(error) if isinstance(error, LoginsBusyError) else LOGIN_FAILED
