"""The entries of a directory. Java is asked once for all of them: one by one, each would take eight calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.java import list_of, texts

# The text of `org.apache.hadoop.fs.FileStatus.toString` since Hadoop 3.0. A name may hold any of these words, so
# the last ones count.
_STATUS = re.compile(
    r"\w+\{path=(?P<path>.*); isDirectory=(?P<is_directory>true|false); "
    r"(?:length=(?P<size>\d+); replication=\d+; blocksize=\d+; )?"
    r"modification_time=(?P<modified>-?\d+); access_time=-?\d+; .*isSymlink=false\b.*\}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or directory, or a link to one, which is neither."""

    name: str
    is_file: bool
    is_directory: bool
    size_bytes: int
    modified_ms: int


def entries(spark: SparkSession, statuses: Any) -> list[Entry]:
    """The entries of an array of Hadoop's `FileStatus`."""
    if not len(statuses):
        return []
    said = texts(spark, list_of(spark, statuses))
    if said is None:
        return [_asked(status) for status in statuses]
    return [parsed(text) or _asked(statuses[number]) for number, text in enumerate(said)]


def parsed(text: str) -> Entry | None:
    """The entry that the text of a status describes; None where a subclass of `FileStatus` writes another text.

    >>> parsed("FileStatus{path=file:/a/b; isDirectory=true; modification_time=7; access_time=0; isSymlink=false}")
    Entry(name='b', is_file=False, is_directory=True, size_bytes=0, modified_ms=7)
    """
    found = _STATUS.fullmatch(text)
    if found is None:
        return None
    is_directory = found["is_directory"] == "true"
    if is_directory == (found["size"] is not None):
        return None
    name = found["path"].rpartition("/")[2]
    return Entry(name, not is_directory, is_directory, int(found["size"] or 0), int(found["modified"]))


def _asked(status: Any) -> Entry:
    return Entry(
        str(status.getPath().getName()),
        bool(status.isFile()),
        bool(status.isDirectory()),
        int(status.getLen()),
        int(status.getModificationTime()),
    )
