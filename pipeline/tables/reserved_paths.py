"""Directories of ours below a table's own: Spark passes over names that begin with a dot."""

from __future__ import annotations

# Where partitions lie while their files are exchanged, and the records of these exchanges.
PLACES = ".starpruner-compacted"

# The files that a publication moves, its journal, and the lock of the process that works on the table.
WORK = ".starpruner"
LOCK = f"{WORK}/lock"
