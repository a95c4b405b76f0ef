"""HTTP Basic: the name and the password that a request brings."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BasicLogin:
    """A name and a password."""

    user: str
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """The Authorization header that brings it."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


def basic_login(header: str) -> BasicLogin:
    """The login of an Authorization header. Raises ValueError with a sentence that quotes nothing of it.

    >>> basic_login("Basic YW5uOnNlY3JldA==").user
    'ann'
    """
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        raise ValueError("the Authorization header is not of HTTP Basic")
    try:
        user, colon, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise ValueError("the Authorization header is not base64 of a name and a password") from None
    if not colon:
        raise ValueError("the Authorization header has no password")
    return BasicLogin(user, password)
