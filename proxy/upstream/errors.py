"""Errors of a call to a backend. Their types say whether the backend may have seen the call, and why it failed."""

from __future__ import annotations


class BackendError(Exception):
    """The backend could not be reached, refused the proxy, or is not a HiveServer2. The message is a sentence."""


class LoginError(BackendError):
    """The backend has refused the login."""


class OwnLoginError(BackendError):
    """The proxy's own login by Kerberos failed. No backend is to blame: it may be a key, a clock or a KDC."""


class OwnLimitError(BackendError):
    """The proxy has too little memory for a reply. No backend is to blame."""


class UnsentError(BackendError):
    """The call was not sent: a retry cannot run it twice."""


class RefusedError(BackendError):
    """The backend has refused the client's credentials."""
