"""Answers of the backend that are kept, and the theory of state: which old ones a statement may use, and why.

Any answer may be out of date as soon as it is there. Each kind is current for a while; within a grace behind that
it is used where somebody asks again before a row leaves. A window statement is one with `consistency = "window"`.

* Descriptions of tables (`facts_cache`). Current: 60 s (`catalog.facts_ttl_s`). Grace: an hour
  (`rewrite.keys_remembered_s`), in a window statement whose keys are checked later; the check asks again
  (`ask_keys._check`). A predicate compares columns by the names that the statement itself uses, and lets all rows
  through where a column has another type by now. An evolving write through this proxy voids them: one that may
  change columns (`written_tables`), and any write where a setting of the session or the server lets INSERT do so
  (`session_writes`). So does a statement of a session of that state that may change what names mean, such as SET,
  USE and CREATE TEMPORARY VIEW; it voids settings and names too, but no keys. A table that gets more columns or
  another format past this proxy is noticed only after the 60 s: the one gap (docs/coverage.md).
* Texts of views (`facts_cache`). To plan: as descriptions. Before a row leaves, each view whose text decides what
  keys are (`Plan.follows`) has been described since the statement came, or the original is sent.
* Names known as tables (`metadata_cache`). Current: until they are forgotten, as descriptions are. By them, a
  statement without a join is left alone at once. A table that has become a view is then not narrowed.
* Settings of the server (`spark_settings`). Current, and grace: as descriptions. A statement of the session that
  may change them leads to another state (`session_state`), which has answers of its own. What quotes mean
  (`SessionCatalog.quoting_is_default`) has no grace.
* Functions that the server lacks (`spark_settings`). Current: as descriptions. Grace: none.
* Keys checked later (`key_cache`). Current: never, each use is checked. Grace: an hour
  (`rewrite.keys_remembered_s`); the check asks again, and no row leaves before every key that there is now was
  among them (`operations.key_check`). Where one was not, the statement is cancelled and decided about once more,
  by the keys that the check has just read (`KeyTerms.asked_since`), which count as asked for by it. A write
  through this proxy to a table that keys were read from voids them, by the fence that each entry keeps
  (`write_fence`), and so do 1,000 other writes. Keys that were found to differ three times in a row are asked for
  first.
* Trusted keys (`key_cache`). Current: never, by default. A user may say that a small side can be so many seconds
  old (`rewrite.key_staleness_s`, and `rewrite.key_snapshot_s` for keys at a snapshot); then keys that the same
  session has asked for need no check.
* Snapshots (`iceberg_snapshots`). The one that a name reads is asked for each time; what its version reads is the
  same for ever.
* Lists of partitions (`layout.partition_lists`). Current: 600 s (`catalog.partitions_ttl_s`). By a list, a
  condition becomes wider, or names partitions that certainly do not match; a partition that is newer than the list
  is read. For the history alone, lists up to a day old are counted.
* The file index's tables (`layout.file_lists`). Current: 300 s (`files.tables_ttl_s`); files of a table, also
  those that Iceberg lists (`layout.iceberg_files`), until the index or the snapshot says other numbers. A file is
  left out while its path, size and time are those that were looked at. Iceberg finds files to skip by itself,
  whatever the list says.
* Lists of files, and the way in which Spark makes splits of them, where they decide about splits alone
  (`split_packing`, and the above). Grace: 300 s (`splits.asked_every_s`); asked for again beside the statement,
  for those that follow. Without keys nothing but a number of tasks is inserted. Descriptions and settings, which
  decide whether the order of rows shows in the answer, have no grace here (`fewer_splits`).
* Sizes of tables without statistics that something was to narrow (`metadata_cache`). Current: an hour, past writes
  and SET: they decide whether keys are asked for, never what is inserted. One by which a table is too small to be
  narrowed is forgotten at once.
* Plans of statements under a limit, and sums of the files of Iceberg's snapshots (`proxy.session.limit_judge`).
  Current: as descriptions. They decide whether a statement is refused.
* Failures and sizes that are missing (`caches`, `late_answers`). Current: 60 s to 600 s, in which a question is
  not asked.
* A backend's answers about itself: that each client has a session to itself (`own_sessions`; current: 600 s, void
  as soon as a session of the proxy's own is lost or was closed), that no write adds columns (`evolving_backends`),
  and that it refused a second connection (`key_checks`; current: 600 s). They decide whom the proxy asks.
* Lessons of earlier runs (`feedback`). Of any age: they decide whether something is narrowed, never by what.

EXPLAIN asks for its keys first, and uses nothing that has expired. docs/decisions/0063 says who can write an
entry, and who can read it.

One value holds the grace of a statement, and whom it asks (`answer_policy`). If all was forgotten since a question
was asked, its answer is not kept: names and settings may mean something else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
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
    """The newest answers, by their questions. Any thread may use them."""

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

    def get(self, question: K, grace_s: float = 0.0) -> Answer[V] | None:
        """The last answer, if it is current or expired less than `grace_s` ago."""
        found = self.known(question)
        return found if found is not None and found.until + grace_s > self._clock() else None

    def keep(self, question: K, value: V, counts_s: float, generation: int | None = None) -> None:
        """Keep an answer for so long, unless all was forgotten since the generation of its question."""
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
        grace_s: float = 0.0,
        *,
        may_keep: Callable[[], bool] = always,
    ) -> V:
        """The answer that `get` has, or else the one that `ask` gives, with the seconds for which it counts."""
        found = self.get(question, grace_s)
        if found is not None:
            return found.value
        generation = self._generation
        value, counts_s = await ask()
        if may_keep():
            self.keep(question, value, counts_s, generation)
        return value

    def drop(self, questions: Iterable[K]) -> None:
        """Forget the answers to these questions."""
        with self._lock:
            for question in questions:
                _ = self._answers.pop(question, None)

    def forget(self) -> None:
        """Forget all answers, and those on their way."""
        with self._lock:
            self._answers.clear()
            self._generation += 1
