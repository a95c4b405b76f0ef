"""The errors of a call to the backend: how much of it may have been done, and why it failed."""

from __future__ import annotations


class BackendError(Exception):
    """The backend could not be reached, refused us, or is not a HiveServer2. The message is a sentence."""


class LoginError(BackendError):
    """The backend has refused the login."""


class UnsentError(BackendError):
    """Nothing has been sent: to try again cannot do anything twice."""


class RefusedError(BackendError):
    """The backend does not take the client's credentials."""
