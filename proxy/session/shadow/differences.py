"""Differences of shadow mode: kept in memory and in a file, and reported in the log without texts."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from proxy.session.shadow.checksum import Checksum
from proxy.session.shadow.compare import Clock, Comparison, Pair, ShadowLimits, ShadowVerdict, compare
from proxy.statements.redaction import without_secrets

# Two texts each, of at most some hundred thousand characters: 50 MB where every one is as long as may be.
KEPT_MAX: Final = 50

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Difference:
    """A statement whose rewrite gave another answer. Its texts have literals, so they stay out of logs."""

    # Seconds since 1970.
    at: float
    verdict: str
    original: str = field(repr=False)
    rewritten: str = field(repr=False)
    original_checksum: Checksum | None
    # None where the rewritten text fails.
    rewritten_checksum: Checksum | None
    # As in log lines and in the history.
    statement_id: str = "-"


class DifferenceLog:
    """The newest differences of the process, and a file of them. Used by several threads at once."""

    def __init__(self, path: Path | None, file_bytes_max: int, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._now = now
        self._kept: deque[Difference] = deque(maxlen=KEPT_MAX)

    def newest(self) -> tuple[Difference, ...]:
        """The differences in memory, the newest first."""
        return tuple(reversed(self._kept.copy()))

    def add(self, pair: Pair, comparison: Comparison) -> None:
        """Remember a comparison that blames us."""
        difference = Difference(
            at=self._now(),
            verdict=comparison.verdict.name,
            original=without_secrets(pair.original),
            rewritten=without_secrets(pair.rewritten),
            original_checksum=comparison.original,
            rewritten_checksum=comparison.rewritten,
            statement_id=pair.statement_id,
        )
        self._kept.append(difference)
        log.error(
            "shadow: statement %s: its rewrite is wrong: %s; %s rows, not %s; its original of %d characters was"
            " sent%s",
            *(pair.statement_id, comparison.verdict.value),
            *(_rows(comparison.rewritten), _rows(comparison.original), len(pair.original)),
            self._write(difference),
        )

    def _write(self, difference: Difference) -> str:
        """Append to the file, if there is one. Returns what the log should say of it."""
        if self._path is None:
            return ""
        line = msgspec.json.encode(difference) + b"\n"
        try:
            # One write of a whole line, at the end: lines of other threads stay whole too.
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(file).st_size + len(line) > self._file_bytes_max:
                    return f"; {self._path} is full, so it was not added there"
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            return f"; it could not be added to {self._path}: {error.strerror}"
        return f"; both texts are in {self._path}"


async def watch(
    pair: Pair,
    limits: ShadowLimits,
    clock: Clock,
    differences: DifferenceLog,
    told: Callable[[Comparison], None],
) -> None:
    """Compare, keep a difference, and report the result. `proxy.frontend.background_runner` runs it."""
    comparison = await compare(pair, limits, clock)
    if comparison.blames_us:
        differences.add(pair, comparison)
    elif comparison.verdict is not ShadowVerdict.EQUAL:
        log.info("shadow: statement %s: %s: %s", pair.statement_id, comparison.verdict.value, comparison.why)
    told(comparison)


def _rows(checksum: Checksum | None) -> str:
    return "none" if checksum is None else str(checksum.rows)
