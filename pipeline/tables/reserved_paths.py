"""Paths of ours below a table's directory. Spark ignores names that begin with a dot."""

from __future__ import annotations

# The temporary locations of partitions whose files are exchanged, and the records of these exchanges.
EXCHANGES = ".starpruner-compacted"

# The files that a publication moves, its journal, and the lock of the process that works on the table.
WORK = ".starpruner"
LOCK = f"{WORK}/lock"
