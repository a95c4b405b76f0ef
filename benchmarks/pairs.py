"""A query directly and through the proxy, in turns, with Spark's file listing cold and warm."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyhive import hive
from TCLIService import ttypes

from demo.hive import run

COLD, WARM = "cold", "warm"

# Where Linux tells the processor time of a process, in ticks; other systems do not.
_STAT = "/proc/{}/stat"
# What follows the command's name, which may hold spaces, up to the user's and the system's ticks.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


@dataclass
class Runs:
    """What each run of one query took on one side, in seconds; no processor time where it is not known."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass
class Pair:
    """The runs of both sides, with the listing in one state."""

    direct: Runs = field(default_factory=Runs)
    proxied: Runs = field(default_factory=Runs)


@dataclass(frozen=True)
class Sides:
    """A session on the server and some through the proxy, all in the database of the tables."""

    direct: hive.Connection
    # For each state of the listing: what the cost gate learns of one user's statements it does not use for
    # another's, and with a cold listing they take other times.
    proxied: Mapping[str, hive.Connection]
    # The server and the proxy, where they run here: a busy machine stretches the clock, hardly their time.
    processes: Sequence[int] = ()

    def measure(self, sql: str, facts: Sequence[str], listing: str, *, runs: int, warm_ups: int) -> Pair:
        """Run a query so many times on each side, the sides in turns, after runs that do not count.

        The proxy's cost gate learns from each run, so the first ones are not what a user sees of a dashboard.
        """
        counted, uncounted = Pair(), Pair()
        for number in range(-warm_ups, runs):
            pair = counted if number >= 0 else uncounted
            # Neither side always finds what the other one left in the machine's caches.
            for is_proxied in (False, True) if number % 2 == 0 else (True, False):
                session = self.proxied[listing] if is_proxied else self.direct
                if listing == COLD:
                    self._forget_listing(session, facts)
                self._timed(session, sql, pair.proxied if is_proxied else pair.direct)
        return counted

    def _timed(self, session: hive.Connection, sql: str, runs: Runs) -> None:
        cpu_s, wall_s = self._cpu_s(), time.perf_counter()
        _ = run(session, sql)
        runs.wall_s.append(time.perf_counter() - wall_s)
        if cpu_s is not None:
            runs.cpu_s.append((self._cpu_s() or 0.0) - cpu_s)

    def _forget_listing(self, session: hive.Connection, facts: Sequence[str]) -> None:
        """Make Spark forget which files the facts have; it remembers that for each session.

        A session of the proxy's too is told on the direct connection. Through the proxy, REFRESH would make the
        proxy forget what it knows of the tables, as it does after any statement that may change them, while a
        listing becomes cold without one: by an INSERT elsewhere, or because there is no room for it.
        """
        for fact in facts:
            request = ttypes.TExecuteStatementReq(session.sessionHandle, f"REFRESH TABLE {fact}")
            answer = self.direct.client.ExecuteStatement(request)
            if answer.status.statusCode != ttypes.TStatusCode.SUCCESS_STATUS:
                raise RuntimeError(f"REFRESH TABLE {fact}: {answer.status.errorMessage}")
            self.direct.client.CloseOperation(ttypes.TCloseOperationReq(answer.operationHandle))

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
