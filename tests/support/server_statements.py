"""What Spark Thrift Server itself says became of the statements it was sent, from the page of its UI."""

import html
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.request import urlopen

# The page follows the server's events a moment later.
SETTLE_SECONDS_MAX = 60
SETTLE_POLL_SECONDS = 0.2
# The first question to its REST API takes a busy machine a while.
ANSWER_SECONDS_MAX = 60
HANG_UPS_MAX = 3

_ROW = re.compile(
    r'<span class="description-input">(?P<sql>.*?)</span>\s*</td>\s*<td>\s*(?P<state>\w+)', re.DOTALL
)


@dataclass(frozen=True)
class StatementPage:
    """The page of an application that is a Thrift Server."""

    ui_url: str

    def states(self, words: str) -> list[str]:
        """The states of the statements that hold the words, the newest one first."""
        page = _answer(f"{self.ui_url}/sqlserver/?sqlstat.pageSize=100000").decode()
        return [row["state"] for row in _ROW.finditer(page) if words in html.unescape(row["sql"])]

    def become(self, words: str, states: list[str]) -> bool:
        """Whether those statements come to these states before long."""
        return _before_long(lambda: self.states(words) == states)

    def runs(self, words: str) -> bool:
        """Whether the one statement that holds the words is at work before long; its steps are not all shown.

        With a job: of one that is cancelled before its job begins, the page goes on saying that it has started.
        """
        return _before_long(lambda: self.states(words) in (["STARTED"], ["COMPILED"]) and self._running_jobs() > 0)

    def becomes_idle(self) -> bool:
        """Whether Spark has no job under way before long."""
        return _before_long(lambda: self._running_jobs() == 0)

    def _running_jobs(self) -> int:
        applications = f"{self.ui_url}/api/v1/applications"
        (application,) = json.loads(_answer(applications))
        return len(json.loads(_answer(f"{applications}/{application['id']}/jobs?status=running")))


def _answer(url: str) -> bytes:
    """What the UI answers. On a busy machine it hangs up on its first visitors before it has begun to."""
    for _ in range(HANG_UPS_MAX):
        try:
            with urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
                return bytes(answer.read())
        except ConnectionError:
            continue
    raise ConnectionError(f"{url} hung up {HANG_UPS_MAX} times")


def _before_long(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(SETTLE_POLL_SECONDS)
    return held
