"""Answers of the backend that are kept, and the theory of state: which old ones a statement may use, and why.

Any answer may be out of date as soon as it is there. So each kind is used only where its age loses no row:

* Descriptions of tables (`facts_cache`). A predicate compares columns by the names that the statement itself
  uses, and lets all rows through where a column has another type by now. A write through this proxy that may
  change columns has the table described again, before and after (`write_fence`). Columns that change past this
  proxy are noticed after `catalog.facts_ttl_s`.
* Texts of views (`facts_cache`): the keys are those of the text, so it is one from since the statement came,
  or is asked for again while the statement runs.
* Settings that decide what names and quotes mean (`spark_settings`): kept as descriptions are, and forgotten
  with a statement of the session that may change them, of which the session's state is made (`session_state`).
* Keys (`key_cache`): those that the same session has asked for, up to `key_staleness_s`, by the user's own
  choice. Others are asked for again while the statement runs, and no row leaves before every key that there is
  now was among them (`operations.key_check`). A write through this proxy to what they were read from voids
  them.
* Keys at a snapshot: the snapshot holds the same rows for ever. Which snapshot a name reads is asked each
  time.
* Lists of partitions: a condition leaves out partitions that certainly miss, and none that it does not name.
  A partition that is new is read.
* Lists of files (`file_lists`, `iceberg_files`): a file is left out while its path, size and time are those
  that were looked at. Iceberg finds files to skip by itself, whatever the list says.
* Packings, numbers, sizes, lessons, failures: they decide how many tasks a scan has, and whether asking for
  keys pays. The rows are the same.

Who can write an entry, and who can read it, says docs/decisions/0063. An answer is current until it expires.
For a while after that it is due: it may be used where it is asked for again while the statement runs, or
beside it for those that follow (`due_s` says for how long). Then it is gone. One to a question from before all
was forgotten is not kept: names and settings may mean something else since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from proxy.operations.dispatch import always

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Of the sessions of one state. Dashboards have some dozens of key queries, and these read some dozens of tables.
ANSWERS_MAX: Final = 1_000


@dataclass(frozen=True)
class Answer(Generic[V]):
    """An answer, when it came, and until when it counts, in seconds of the sessions' clock."""

    value: V
    came_at: float
    until: float


class Answers(Generic[K, V]):
    """Answers by their questions, those kept last. Any thread may use them."""

    def __init__(self, clock: Callable[[], float], answers_max: int = ANSWERS_MAX) -> None:
        self._clock = clock
        self._answers_max = answers_max
        self._lock = Lock()
        self._answers: OrderedDict[K, Answer[V]] = OrderedDict()
        # Counts how often all was forgotten.
        self._generation = 0

    def known(self, question: K) -> Answer[V] | None:
        """The last answer, whatever its age."""
        with self._lock:
            return self._answers.get(question)

    def get(self, question: K, due_s: float = 0.0) -> Answer[V] | None:
        """The last answer, if it is current, or has been due for less than that."""
        found = self.known(question)
        return found if found is not None and found.until + due_s > self._clock() else None

    def keep(self, question: K, value: V, counts_s: float, generation: int | None = None) -> None:
        """Keep an answer that counts for so long, to a question from a generation or from now."""
        now = self._clock()
        with self._lock:
            if generation is not None and generation != self._generation:
                return
            self._answers[question] = Answer(value, now, now + counts_s)
            self._answers.move_to_end(question)
            if len(self._answers) > self._answers_max:
                _ = self._answers.popitem(last=False)

    async def get_or_ask(
        self,
        question: K,
        ask: Callable[[], Awaitable[tuple[V, float]]],
        due_s: float = 0.0,
        *,
        may_keep: Callable[[], bool] = always,
    ) -> V:
        """The answer that `get` has, or else the one that `ask` gives, with the seconds for which it counts."""
        found = self.get(question, due_s)
        if found is not None:
            return found.value
        generation = self._generation
        value, counts_s = await ask()
        if may_keep():
            self.keep(question, value, counts_s, generation)
        return value

    def forget(self) -> None:
        """Forget all answers, and those on their way."""
        with self._lock:
            self._answers.clear()
            self._generation += 1
