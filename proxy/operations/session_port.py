"""The session as connections see it: how it was opened, and the decisions about its statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Final, Protocol

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.statements.statement_class import StatementClass
from rewriter.sql.classify import first_word

# Settings in an opening begin with this. Those of the server's protocol and of this proxy change no answer.
_SETTING: Final = "set:"
_NOT_OF_SPARK: Final = ("set:hiveconf:hive.server2.", "set:hiveconf:starpruner.")
# The setting that names the dashboard or program of a session's statements, and the characters of one.
LABEL_SETTING: Final = "starpruner.label"
LABEL_CHARS_MAX: Final = 100


@dataclass(frozen=True)
class SessionOpening:
    """The settings and the owner with which a client opened its session."""

    # The settings of the session. They may hold passwords.
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    # A digest of its login: equal for equal credentials, for as long as the process lives.
    owner: str = field(default="", repr=False)
    # The name that the client logged in by, or that the call gives where the backend asks for no login; or the
    # user for whom it acts.
    user: str = ""
    # The host that the client connects from.
    client: str = ""
    # The address of the backend that has the session.
    backend: str = ""
    # The login by which the proxy can open the same session, by its full name; empty where it can open none.
    login: str = ""
    # The name in the call, which counts where the backend asks for no login.
    named: str = ""
    # The user for whose lessons, and for whose share of the threads, the statements count: equal for all sessions
    # that a login opens for one user. Empty if it is not known: then they count for `owner`.
    who: str = ""
    # False for a session that was opened elsewhere, or whose settings or login are not known.
    is_seen: bool = True

    @property
    def counts_for(self) -> str:
        """The user or the owner that its statements count for; empty where neither is known."""
        return self.who or self.owner


@dataclass(frozen=True)
class KnownState:
    """The state of a session that the proxy can bring a session of its own into."""

    # Equal for equal states.
    digest: bytes
    opened: SessionOpening
    # The statements by which it came into the state, behind the opening. They may hold passwords.
    statements: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def list_owner(self) -> tuple[str, ...]:
        """The owner of lists that sessions of the state ask for: a login, the user it acts for, their settings.

        It is the same in all processes, and whatever the current database: a list is that of a table's full name.
        """
        settings = sorted(
            f"{name}={value}"
            for name, value in self.opened.configuration.items()
            if name.startswith(_SETTING) and not name.startswith(_NOT_OF_SPARK)
        )
        changes = (sql for sql in self.statements if first_word(sql) != "use")
        return self.opened.login, self.opened.user, folded(b"", *settings, "", *changes).hex()


def folded(before: bytes, *texts: str) -> bytes:
    """The digest of an earlier digest and the texts, each with its length before it."""
    digest = sha256(before)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.digest()


class SessionPort(Protocol):
    """Decides about the statements of one session."""

    async def rewrite(self, statement: StatementClass, keys: KeyTerms = ASK_FIRST) -> Dispatch:
        """Decide about a statement by what `ask_driver` answers."""
        ...

    def is_quick(self, statement: StatementClass) -> bool:
        """True if a decision takes no more than a look at the text. Called from the event loop."""
        ...

    def known_state(self) -> KnownState | None:
        """The state of the session now; None where it is not known, or is like that of no other session."""
        ...

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        """Dispatch the original, and ask nothing."""
        ...

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one, which may change the session, is released."""
        ...

    def used_elsewhere(self) -> None:
        """Another process has forwarded statements of the session, which may have changed its settings."""
        ...

    def closed(self, *, is_forgotten: bool = False) -> None:
        """The session has ended, or is forgotten here and goes on. Called from the event loop: to be quick."""
        ...
