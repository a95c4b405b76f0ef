"""What Spark Thrift Server itself says became of the statements it was sent, from the page of its UI."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.request import urlopen

from server_state import statements

# The page follows the server's events a moment later. Longer than the statements that tests end early would run.
SETTLE_SECONDS_MAX = 150
SETTLE_POLL_SECONDS = 0.2
# The first question to its REST API takes a busy machine a while.
ANSWER_SECONDS_MAX = 60
HANG_UPS_MAX = 3


@dataclass(frozen=True)
class StatementPage:
    """The page of an application that is a Thrift Server."""

    ui_url: str

    def states(self, words: str) -> list[str]:
        """The states of the statements that hold the words, the newest one first.

        Of one whose job begins after it was closed, Spark writes the row anew, as started and without a group.
        """
        page = _answer(f"{self.ui_url}/sqlserver/?sqlstat.pageSize=100000").decode()
        return [each.state if each.group else "CLOSED" for each in statements(page) if words in each.text]

    def become(self, words: str, states: list[str]) -> bool:
        """Whether those statements come to these states before long."""
        return _before_long(lambda: self.states(words) == states)

    def runs(self, words: str) -> bool:
        """Whether the newest statement that holds the words is at work before long; its steps are not all shown.

        With a job of its own: one that is cancelled before may run to its end.
        """
        return _before_long(lambda: self.states(words)[:1] in (["STARTED"], ["COMPILED"]) and self._has_job(words))

    def becomes_idle(self) -> bool:
        """Whether Spark has no job under way before long."""
        return _before_long(lambda: not self._has_job(""))

    def _has_job(self, words: str) -> bool:
        """Whether a job is under way of a statement that holds the words."""
        applications = f"{self.ui_url}/api/v1/applications"
        (application,) = json.loads(_answer(applications))
        jobs = json.loads(_answer(f"{applications}/{application['id']}/jobs?status=running"))
        return any(words in job.get("description", "") for job in jobs)


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
