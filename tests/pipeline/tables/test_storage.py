"""A table's file system: paths are spelled as Spark spells them, without asking Java about each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.java import jvm
from pipeline.tables.directory import Entry, entries, parsed
from pipeline.tables.storage import Storage, StoredFile

PATHS = (
    "",
    "part-00000-5e2a.c000.snappy.parquet",
    "day=2026-01-01/part-00000-5e2a_00003.c000.snappy.parquet",
    "day=a%2Fb/part-0.parquet",
    "day=a%2Fb/a%b c#d?e.parquet",
    "day=é中/é.parquet",
    "day=1 + 1/12:30:00.parquet",
    "12:30=1/a&b;c@d$e,f~g!h'i(j).orc",
    "a/b/c/[x]{y}^z|.orc",
)


@pytest.mark.parametrize("root", ["file:/", "file:/ware%20house/t%2525", "file:///a/b/", "file:/é"])
def test_paths_are_spelled_as_hadoop_spells_them(local_spark: SparkSession, root: str) -> None:
    java = jvm(local_spark)
    at = java.org.apache.hadoop.fs.Path(java.java.net.URI(root))
    files = at.getFileSystem(java.org.apache.hadoop.conf.Configuration())
    storage = Storage(local_spark, root)
    for path in PATHS:
        plain = java.org.apache.hadoop.fs.Path(f"{at.toString().rstrip('/')}/{path}")
        assert storage.absolute(path) == plain.toString()
        # Twice, since directories are remembered.
        for _ in "12":
            assert storage.uri(path) == files.makeQualified(plain).toUri().toString()


def test_a_uri_is_what_spark_calls_the_file(local_spark: SparkSession, tmp_path: Path) -> None:
    # Hadoop's local file system cannot read a file whose name has a colon.
    paths = [path for path in PATHS if ":" not in path and path]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1\n")
    storage = Storage(local_spark, tmp_path.as_uri())
    for path in paths:
        escaped = "".join(f"\\{one}" if one in "{}[]*?\\" else one for one in storage.absolute(path))
        rows = local_spark.read.text(escaped).select("_metadata.file_path").collect()
        assert [row.file_path for row in rows] == [storage.uri(path)]


def test_what_a_directory_holds_is_listed_as_the_file_system_says(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    sizes = {"part-0.parquet": 3, "b; isDirectory=true; length=7": 4, "a\nb, {path=c": 5, "é 中": 0}
    hidden = {"_SUCCESS": 0, "part-1.parquet._COPYING_": 2}
    for name, size_bytes in {**sizes, **hidden}.items():
        (tmp_path / name).write_bytes(b"x" * size_bytes)
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "part-2.parquet").write_bytes(b"x")
    storage = Storage(local_spark, tmp_path.as_uri())
    stored = {
        StoredFile(name, size, (tmp_path / name).stat().st_mtime_ns // 1_000_000) for name, size in sizes.items()
    }
    assert set(storage.stored("")) == stored
    assert set(storage.names("")) == {*sizes, *hidden, "day=1"}
    assert set(storage.files_below("")) == {*sizes, "part-1.parquet._COPYING_", "day=1/part-2.parquet"}
    assert storage.stored("day=2") == []


def test_an_entry_that_says_otherwise_what_it_is_is_asked(local_spark: SparkSession) -> None:
    """A link to a file is neither a file nor a directory."""
    java = jvm(local_spark).org.apache.hadoop.fs
    gateway: Any = local_spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    statuses = gateway.new_array(java.FileStatus, 2)
    for number, name in enumerate(("file", "link")):
        statuses[number] = java.FileStatus()
        statuses[number].setPath(java.Path(f"/a/{name}"))
    statuses[1].setSymlink(java.Path("/b"))
    assert parsed(statuses[0].toString())
    assert parsed(statuses[1].toString()) is None
    file = Entry("file", is_file=True, is_directory=False, size_bytes=0, modified_ms=0)
    assert entries(local_spark, statuses) == [file, replace(file, name="link", is_file=False)]
