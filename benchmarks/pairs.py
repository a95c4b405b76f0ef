"""A query directly and through the proxy, in turns, with Spark's file listing cold and warm."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from pyhive import hive

from demo.hive import run

COLD, WARM = "cold", "warm"

# Linux tells the processor time of a process here, in ticks; other systems do not.
_STAT = "/proc/{}/stat"
# Positions of the user's and the system's ticks after the command's name, which may hold spaces.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


@dataclass
class Runs:
    """The seconds of each run of one query on one side; no processor times where they are not known."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass
class Pair:
    """The runs of both sides, with the listing in one state."""

    direct: Runs = field(default_factory=Runs)
    proxied: Runs = field(default_factory=Runs)


@dataclass(frozen=True)
class Sides:
    """A session on the server and one through the proxy, and how to open more; all in the same database."""

    direct: hive.Connection
    proxied: hive.Connection
    # One more of these, through the proxy if so told. Spark lists files for each session, so in a new one they are
    # yet to be listed. It is another user's: what the cost gate learns of one it does not use for another.
    open_session: Callable[[bool], hive.Connection]
    # The server and the proxy, where they run here: a busy machine stretches the clock, hardly their time.
    processes: Sequence[int] = ()

    def measure(self, sql: str, listing: str, *, runs: int, warm_ups: int) -> Pair:
        """Run a query so many times on each side, the sides in turns, after runs that do not count.

        The proxy's cost gate learns from each run, so the first ones are not what a user sees of a dashboard.
        """
        counted, uncounted = Pair(), Pair()
        for number in range(-warm_ups, runs):
            pair = counted if number >= 0 else uncounted
            # Neither side always finds what the other one left in the machine's caches.
            for is_proxied in (False, True) if number % 2 == 0 else (True, False):
                into = pair.proxied if is_proxied else pair.direct
                if listing == WARM:
                    self._timed(self.proxied if is_proxied else self.direct, sql, into)
                else:
                    with closing(self.open_session(is_proxied)) as session:
                        self._timed(session, sql, into)
        return counted

    def _timed(self, session: hive.Connection, sql: str, runs: Runs) -> None:
        cpu_s, wall_s = self._cpu_s(), time.perf_counter()
        _ = run(session, sql)
        runs.wall_s.append(time.perf_counter() - wall_s)
        if cpu_s is not None:
            runs.cpu_s.append((self._cpu_s() or 0.0) - cpu_s)

    def _cpu_s(self) -> float | None:
        """The processor time of the processes until now."""
        times = [_cpu_s(process) for process in self.processes]
        known = [seconds for seconds in times if seconds is not None]
        return sum(known) if known and len(known) == len(times) else None


def _cpu_s(process: int) -> float | None:
    try:
        stat = Path(_STAT.format(process)).read_text(encoding="utf-8")
    except OSError:
        return None
    ticks = stat.rpartition(")")[2].split()
    return (int(ticks[_USER_TICKS]) + int(ticks[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
