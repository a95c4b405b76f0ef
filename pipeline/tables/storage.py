"""A table's file system, through the Hadoop classes of the running Spark: it reaches whatever Spark reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.spark.java import jvm, jvm_session
from pipeline.tables.directory import Entry, entries

# The end of names that `hdfs dfs -put` is still writing; Spark does not read such files either.
_UNFINISHED = "._COPYING_"
# Names that a URI holds unescaped. Java is asked how others are spelled.
_PLAIN = re.compile(r"[A-Za-z0-9_.=-]+")
# Java's greatest long, by which Hadoop's file systems report a capacity that they do not know.
_UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a directory, as the file system lists it."""

    name: str
    size_bytes: int
    modified_ms: int


class Storage:
    """The files below one directory; every path is relative to it, spelled as the file system spells it."""

    def __init__(self, spark: SparkSession, root_uri: str) -> None:
        self._spark = spark
        self._jvm = jvm(spark)
        # Kept, since each name in front of a class is a call to Java, as is each call of a method.
        self._path_class = self._jvm.org.apache.hadoop.fs.Path
        # Made from a URI, since a location in the catalog is percent-encoded and a Path is not; and again from its
        # text, since Hadoop spells `file:///a` and `file:/a/` alike only then.
        self._root = self._path_class(self._path_class(self._jvm.java.net.URI(root_uri)).toString())
        self._root_text = str(self._root.toString())
        self._directory_uris: dict[str, str] = {}
        self._files = self._root.getFileSystem(jvm_session(spark).sessionState().newHadoopConf())

    @property
    def root(self) -> str:
        """The directory itself, for Spark's readers and writers."""
        return self._root_text

    def absolute(self, path: str) -> str:
        """The path for Spark's readers and writers."""
        # All as one text: `Path` would read a colon in a relative path as the end of a scheme.
        return f"{self._root_text.rstrip('/')}/{path}" if path else self._root_text

    def uri(self, path: str) -> str:
        """The path as a URI, which is how Spark's `_metadata.file_path` spells it."""
        directory, _, name = path.rpartition("/")
        if not _PLAIN.fullmatch(name):
            return self._uri(path)
        if directory not in self._directory_uris:
            self._directory_uris[directory] = self._uri(directory).rstrip("/")
        return f"{self._directory_uris[directory]}/{name}"

    def exists(self, path: str) -> bool:
        """Tells whether there is a file or a directory."""
        return bool(self._files.exists(self._path(path)))

    def names(self, path: str) -> list[str]:
        """The names in a directory, hidden ones too; none if there is no such directory."""
        return [entry.name for entry in self._entries(path)]

    def files(self, path: str) -> list[str]:
        """The paths of the files in a directory itself that Spark reads; it ignores hidden ones."""
        names = [entry.name for entry in self._entries(path) if entry.is_file and not _is_hidden(entry.name)]
        return [f"{path}/{name}".removeprefix("/") for name in names]

    def stored(self, path: str) -> list[StoredFile]:
        """The files in a directory itself that Spark reads, with size and time."""
        return [
            StoredFile(entry.name, entry.size_bytes, entry.modified_ms)
            for entry in self._entries(path)
            if entry.is_file and not _is_hidden(entry.name) and not entry.name.endswith(_UNFINISHED)
        ]

    def files_below(self, path: str) -> list[str]:
        """The files that Spark reads in a directory and in all directories below it, relative to `path`."""
        found: list[str] = []
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            here = f"{path}/{directory}".rstrip("/")
            found += [file.removeprefix(f"{path}/") for file in self.files(here)]
            waiting += [f"{directory}/{name}".removeprefix("/") for name in self._directories(here)]
        return found

    def size_bytes(self, path: str) -> int:
        """The size of all files in and below a directory, hidden ones too."""
        return int(self._files.getContentSummary(self._path(path)).getLength())

    def file_bytes(self, path: str) -> int | None:
        """The size of a file; None if there is none."""
        return int(self._files.getFileStatus(self._path(path)).getLen()) if self.exists(path) else None

    def free_bytes(self) -> int | None:
        """The free space of the file system; None where it reports none, as object stores do not."""
        status = self._files.getStatus(self._root)
        free_bytes = int(status.getRemaining())
        return free_bytes if 0 < int(status.getCapacity()) < _UNLIMITED else None

    def move(self, source: str, target: str) -> None:
        """Renames a file, in one step on every file system that has such a step; makes the target's directory."""
        path = self._path(target)
        self._files.mkdirs(path.getParent())
        if not self._files.rename(self._path(source), path):
            raise PipelineError(f"{self.root}: the file system refused to rename {source} to {target}")

    def complete_move(self, source: str, target: str) -> None:
        """Moves a file to an unused name; completes a move that was cut short where a rename is a copy."""
        moved_bytes = self.file_bytes(target)
        if moved_bytes is not None and moved_bytes == self.file_bytes(source):
            self.delete(source)
            return
        if moved_bytes is not None:
            self.delete(target)
        self.move(source, target)

    def copy(self, source: str, target: str) -> None:
        """Copies a file, byte for byte; under the target's name it is there as a whole or not at all."""
        path, parts = self._path(target), target.rpartition("/")
        unfinished = f"{parts[0]}/.{parts[2]}".removeprefix("/")
        self._files.mkdirs(path.getParent())
        self._jvm.org.apache.hadoop.fs.FileUtil.copy(
            self._files,
            self._path(source),
            self._files,
            self._path(unfinished),
            False,  # noqa: FBT003 - Java's; the source stays
            True,  # noqa: FBT003 - Java's; a file that a killed process left is overwritten
            self._files.getConf(),
        )
        self.move(unfinished, target)

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all below it; does nothing if there is none."""
        self._files.delete(self._path(path), True)  # noqa: FBT003 - Java's; recursively

    def read(self, path: str) -> str | None:
        """The text of a small file; None if there is none."""
        if not self.exists(path):
            return None
        stream = self._files.open(self._path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, path: str, text: str) -> bool:
        """Writes a new small text file; False if there is one already, which stays unchanged."""
        try:
            stream = self._files.create(self._path(path), False)  # noqa: FBT003 - Java's; no overwriting
        except Exception as error:
            if self.exists(path):
                return False
            raise PipelineError(f"{self.root}: {path} cannot be written: {error}") from error
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        return True

    def _path(self, path: str) -> Any:
        return self._path_class(self.absolute(path)) if path else self._root

    def _uri(self, path: str) -> str:
        return str(self._files.makeQualified(self._path(path)).toUri().toString())

    def _entries(self, path: str) -> list[Entry]:
        return entries(self._spark, self._files.listStatus(self._path(path))) if self.exists(path) else []

    def _directories(self, path: str) -> list[str]:
        return [entry.name for entry in self._entries(path) if entry.is_directory and not _is_hidden(entry.name)]


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
