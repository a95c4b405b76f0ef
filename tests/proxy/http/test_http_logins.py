"""Passwords of clients over HTTP, and how long the tickets that they brought are kept."""

import asyncio
import weakref
from types import SimpleNamespace
from typing import cast

import pytest
from support.http_stage import basic
from support.scripted_session import eventually

from proxy.http import http_logins
from proxy.http.http_logins import HttpLogins
from proxy.kerberos.client_logins import ClientLogins, PlainLogins


class Tickets:
    """Tickets, as far as they are kept."""


class Login(bytes):
    """A login with tickets."""

    tickets: Tickets


class Passwords:
    """Takes each password, and follows the tickets that it gives out."""

    service = None
    plain = PlainLogins.KDC

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.kept: weakref.WeakSet[Tickets] = weakref.WeakSet()

    def credentials_with_password(self, user: str, password: bytes) -> bytes:
        self.checked.append(user)
        login = Login(b"\0".join((b"", user.encode(), password)))
        login.tickets = Tickets()
        self.kept.add(login.tickets)
        return login


async def test_tickets_of_a_password_are_dropped_although_nobody_else_logs_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_logins, "_REMEMBERED_S", 0.3)
    # The loop's clock, which leaves stalls out.
    monkeypatch.setattr(http_logins, "time", SimpleNamespace(monotonic=asyncio.get_running_loop().time))
    passwords = Passwords()
    logins = HttpLogins(cast("ClientLogins", passwords), 30.0)
    for user in ("anna", "bob", "anna"):
        await logins.identified(list(basic(user).items()))
        await asyncio.sleep(0.05)
    assert passwords.checked == ["anna", "bob"]
    assert len(passwords.kept) == 2
    await eventually(lambda: not passwords.kept)
    await logins.identified(list(basic("anna").items()))
    assert passwords.checked == ["anna", "bob", "anna"]
    await eventually(lambda: not passwords.kept)
