"""A query directly and through the proxy, in turns, with Spark's file listing cold and warm."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import repeat

from processor_time import processor_s
from pyhive import hive

from demo.hive import run

COLD, WARM = "cold", "warm"

# The gate has settled once so many runs one after the other were decided alike: it keeps three runs of each way.
_ALIKE = 3
# Runs beyond the warm-ups that the gate may take to settle. Of one that goes on changing, the measured runs tell.
_SETTLING_RUNS_MAX = 8


@dataclass
class Runs:
    """The seconds of each run of one query on one side; no processor times where they are not known."""

    wall_s: list[float] = field(default_factory=list)
    # Of the server and of the proxy while the run lasted.
    server_cpu_s: list[float] = field(default_factory=list)
    proxy_cpu_s: list[float] = field(default_factory=list)


@dataclass
class Pair:
    """The runs of both sides, with the listing in one state. Runs of one position ran beside each other."""

    direct: Runs = field(default_factory=Runs)
    proxied: Runs = field(default_factory=Runs)
    # The scans that were narrowed in each proxied run, by the proxy's metrics; empty where they are not asked.
    narrowed: list[int] = field(default_factory=list)
    # The same of the runs before that do not count.
    narrowed_before: list[int] = field(default_factory=list)

    @property
    def is_admitted(self) -> bool:
        """True if scans were narrowed in most of the measured runs."""
        return sum(scans > 0 for scans in self.narrowed) * 2 > len(self.narrowed)

    @property
    def is_settled(self) -> bool | None:
        """True if the last runs that did not count were decided alike; None where nothing tells."""
        return _are_alike(self.narrowed_before) if self.narrowed_before else None

    @property
    def trials(self) -> int:
        """Measured runs that were decided otherwise than the last one that did not count."""
        return sum(scans != self.narrowed_before[-1] for scans in self.narrowed) if self.narrowed_before else 0


def _are_alike(narrowed: list[int]) -> bool:
    return len(narrowed) >= _ALIKE and len(set(narrowed[-_ALIKE:])) == 1


@dataclass(frozen=True)
class Sides:
    """A session on the server and one through the proxy, and how to open more; all in the same database."""

    direct: hive.Connection
    proxied: hive.Connection
    # One more of these, through the proxy if so told. Spark lists files for each session, so in a new one they are
    # yet to be listed. It is another user's: what the cost gate learns of one it does not use for another.
    open_session: Callable[[bool], hive.Connection]
    # The server and the proxy, where they run here: a busy machine stretches the clock, hardly their time.
    processes: tuple[int, int] | None = None
    # The scans that the proxy has narrowed until now.
    narrowed_scans: Callable[[], int] | None = None
    # The text of a statement for a side, through the proxy if so told: each side writes a table of its own.
    text_of: Callable[[bool, str], str] = lambda _, sql: sql

    def measure(self, sql: str, listing: str, *, runs: int, warm_ups: int) -> Pair:
        """Run a query so many times on each side, the sides in turns, after runs that do not count.

        The proxy's cost gate learns from each run, so the first ones are not what a user sees of a dashboard.
        Where the metrics tell the decisions, more runs go before until the last ones were decided alike.
        """
        before = self.compare(repeat(sql, warm_ups), listing)
        while warm_ups and self.narrowed_scans is not None and not _are_alike(before.narrowed):
            if len(before.narrowed) >= warm_ups + _SETTLING_RUNS_MAX:
                break
            more = self.compare([sql], listing)
            before.narrowed += more.narrowed
        pair = self.compare(repeat(sql, runs), listing)
        pair.narrowed_before = before.narrowed
        return pair

    def compare(self, statements: Iterable[str], listing: str) -> Pair:
        """Run each statement once on each side; the side that begins changes from statement to statement."""
        pair = Pair()
        for number, sql in enumerate(statements):
            # Neither side always finds what the other one left in the machine's caches.
            for is_proxied in (False, True) if number % 2 == 0 else (True, False):
                into = pair.proxied if is_proxied else pair.direct
                before = self._narrowed() if is_proxied else None
                with self.session(listing, is_proxied=is_proxied) as session:
                    self._timed(session, self.text_of(is_proxied, sql), into)
                if before is not None:
                    pair.narrowed.append((self._narrowed() or 0) - before)
        return pair

    @contextmanager
    def session(self, listing: str, *, is_proxied: bool) -> Iterator[hive.Connection]:
        """A side's session, one more of it where the listing is to be cold."""
        if listing == WARM:
            yield self.proxied if is_proxied else self.direct
        else:
            with closing(self.open_session(is_proxied)) as session:
                yield session

    def _timed(self, session: hive.Connection, sql: str, runs: Runs) -> None:
        cpu_s, wall_s = self._cpu_s(), time.perf_counter()
        _ = run(session, sql)
        runs.wall_s.append(time.perf_counter() - wall_s)
        now_cpu_s = self._cpu_s()
        if cpu_s is not None and now_cpu_s is not None:
            runs.server_cpu_s.append(now_cpu_s[0] - cpu_s[0])
            runs.proxy_cpu_s.append(now_cpu_s[1] - cpu_s[1])

    def _cpu_s(self) -> tuple[float, float] | None:
        """The processor time of the server and of the proxy until now."""
        if self.processes is None:
            return None
        server_s, proxy_s = map(processor_s, self.processes)
        return None if server_s is None or proxy_s is None else (server_s, proxy_s)

    def _narrowed(self) -> int | None:
        return None if self.narrowed_scans is None else self.narrowed_scans()
