"""Spark's errors by their classes and states: Spark's own words, without a literal or value of the statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Before the words of Spark, or of a table's format.
_SERVERS: Final = r"(?:org\.apache\.hive\.service\.cli\.HiveSQLException: )?(?:Error running query: )?"
# The server writes a class first. Spark 3 tells raise_error's words behind those of the job that was aborted.
_CLASS: Final = re.compile(_SERVERS + r"\[(?P<class>[A-Z_][A-Z0-9_]{2,99}(?:\.[A-Z][A-Z0-9_]{2,99})*)\]")
# Another writer has changed what a statement has read of the table that it writes: Delta's errors by their class,
# Iceberg's by the words of its MergingSnapshotProducer, and of its SparkCopyOnWriteScan.
_WRITE_CONFLICT: Final = re.compile(
    _SERVERS + r"(?:\[DELTA_CONCURRENT_|org\.apache\.iceberg\.exceptions\.ValidationException: "
    r"Found (?:new )?conflicting |java\.lang\.IllegalStateException: Runtime file filtering is not possible: )"
)
# The state as the server told it (`proxy.operations.run_query`), and as Spark writes it behind its words.
_TOLD: Final = re.compile(r"\(SQLSTATE ([0-9A-Z]{5})\)$")
_WRITTEN: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b")
# Errors that the same query has again as long as its tables, or its user's rights, are the same, by the standard's
# classes: cardinality violations, data exceptions, syntax and names, beside raise_error's.
_LASTING: Final = ("21", "22", "42", "P0001")
# The beginning of a message says what it is.
_CHARS_MAX: Final = 2_000


@dataclass(frozen=True)
class SparkError:
    """An error's class and its state, each empty where it is not told."""

    name: str
    state: str

    @property
    def is_lasting(self) -> bool:
        """True if the same query would fail again."""
        return self.state.startswith(_LASTING)

    def __str__(self) -> str:
        told = f" (SQLSTATE {self.state})" if self.state else ""
        return f"{self.name or 'an error without a class'}{told}"


def is_write_conflict(message: str) -> bool:
    """True if a statement failed since another one has written the same table.

    >>> is_write_conflict("Error running query: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] io.delta..")
    True
    """
    return _WRITE_CONFLICT.match(message) is not None


def error_of(message: str) -> SparkError:
    """The error that a message begins with.

    >>> str(error_of("Error running query: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"))
    'DIVIDE_BY_ZERO (SQLSTATE 22012)'
    >>> str(error_of("java.lang.OutOfMemoryError: '[SECRET]'"))
    'an error without a class'
    """
    name = _CLASS.match(message[:_CHARS_MAX])
    state = _TOLD.search(message) or _WRITTEN.search(message, name.end() if name is not None else len(message))
    return SparkError(name["class"] if name is not None else "", state[1] if state is not None else "")
