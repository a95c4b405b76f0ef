"""What the real server still holds: its sessions and operations, as its own page says.

The page is Spark's; its events arrive there a moment after the client has its answer.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Final, NamedTuple
from urllib.request import urlopen

SETTLE_SECONDS_MAX: Final = 60
_POLL_SECONDS: Final = 0.1
_ANSWER_SECONDS_MAX: Final = 30

# As many rows as Spark keeps by default.
_PAGE: Final = "/sqlserver/?sessionstat.pageSize=200&sqlstat.pageSize=200"
_ROW: Final = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")
_SESSION_CELLS: Final = 7
_STATEMENT_CELLS: Final = 11
_CLOSED: Final = "CLOSED"


@dataclass(frozen=True)
class Held:
    """Sessions that are online, and operations that are not closed with how they stand and what they execute."""

    sessions: frozenset[str]
    operations: frozenset[tuple[str, str, str]]

    def new_operations(self, before: "Held") -> list[tuple[str, str, str]]:
        """The operations that were not there before."""
        known = {operation[0] for operation in before.operations}
        return [operation for operation in self.operations if operation[0] not in known]


class ListedStatement(NamedTuple):
    """A statement on the server's page: its group of jobs, how it stands and what it executes."""

    group: str
    state: str
    text: str


class KnownState:
    """A server that can be asked about its sessions and operations."""

    def held(self) -> Held:
        """The operations and sessions that the server has now."""
        raise NotImplementedError

    def left_over(self, before: Held, own_before: int, own: Callable[[], int]) -> str:
        """What is left of what came since, once the server had the time to clear up.

        `own` counts the sessions of the proxy's own, of which it may have others by now.
        """
        left = ""

        def is_clear() -> bool:
            nonlocal left
            now, is_own = self.held(), own()
            operations, sessions = now.new_operations(before), len(now.sessions) - is_own
            left = f"{sessions} sessions of clients, {len(before.sessions) - own_before} before, and {operations}"
            return not operations and sessions <= len(before.sessions) - own_before

        # What was left a moment ago may not stand on the page yet.
        time.sleep(_POLL_SECONDS)
        return "" if promptly(is_clear) else left


@dataclass(frozen=True)
class ServerState(KnownState):
    """The page of a server."""

    ui_url: str

    def held(self) -> Held:
        """The operations and sessions that the server has now."""
        with urlopen(self.ui_url + _PAGE, timeout=_ANSWER_SECONDS_MAX) as answer:
            return read_page(answer.read().decode())


def read_page(page: str) -> Held:
    """The tables of sessions and of statements."""
    # Before Spark 4.1 it is a class.
    sessions, operations = re.split(r'(?:id|class)="aggregated-sqlstat', page, maxsplit=1)
    return Held(
        frozenset(cells[2] for cells in _rows(sessions, _SESSION_CELLS) if not cells[4]),
        # A job that begins after its statement was closed makes Spark write the row anew: as one that has just
        # begun, without a group (updateJobDetails in HiveThriftServer2Listener.scala).
        frozenset(each for each in statements(operations) if each.group and each.state != _CLOSED),
    )


def statements(page: str) -> list[ListedStatement]:
    """The rows of the table of statements, the newest one first."""
    return [ListedStatement(cells[2], cells[9], cells[8]) for cells in _rows(page, _STATEMENT_CELLS)]


def _rows(table: str, width: int) -> list[list[str]]:
    found = [[_text(cell) for cell in _CELL.findall(row)] for row in _ROW.findall(table)]
    return [cells for cells in found if len(cells) == width]


def _text(cell: str) -> str:
    return unescape(" ".join(_TAG.sub(" ", cell).split()))


def promptly(condition: Callable[[], bool], seconds: float = SETTLE_SECONDS_MAX) -> bool:
    """Whether something becomes true within a time that is far more than it takes."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return met
