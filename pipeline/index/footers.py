"""Statistics from the footers of Parquet and ORC files, read by the JVM's own readers on the driver.

Parquet's reader knows which writers' statistics are wrong (PARQUET-251, signed bytes as strings) and hides them. A
column gets bounds here only if it is written exactly as a current writer writes the table's type. Spark reads any
other column instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.index.file_listing import certain_bounds
from pipeline.index.indexed_table import IndexedTable
from pipeline.index.orc_bounds import OrcFooter
from pipeline.index.parquet_bounds import ParquetFooter
from pipeline.index.row_groups import row_group_runs
from pipeline.index.rows import FileColumnBounds, IndexedFile

# Threads that wait for storage. A call into the JVM holds Python's lock only while it is written and read.
FOOTERS_AT_ONCE = 8


@dataclass(frozen=True)
class FooterReader:
    """Reads footers of one table's files, from whatever file system Spark reads them."""

    spark: SparkSession
    table: IndexedTable

    def read(self, files: Iterable[IndexedFile]) -> Iterator[IndexedFile]:
        """The files with the bounds that their footers give for certain; without files that changed meanwhile."""
        session: Any = self.spark
        conf = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - PySpark has no other way
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
            read = pool.map(lambda file: self._read(conf, file), files)
            yield from (file for file in read if file is not None)

    def _read(self, conf: Any, file: IndexedFile) -> IndexedFile | None:
        jvm: Any = self.spark._jvm  # noqa: SLF001 - PySpark has no other way
        try:
            path = jvm.org.apache.spark.paths.SparkPath.fromUrlString(file.path).toPath()
            with closing(self._footer(jvm, conf, path)) as footer:
                found = _bounds(footer, self.table.data_columns) if footer.rows == file.rows else {}
            status = path.getFileSystem(conf).getFileStatus(path)
            if (status.getLen(), status.getModificationTime()) != (file.size_bytes, file.modified_ms):
                return None
        except (Py4JError, PySparkException):
            # The file is encrypted, of an unknown version or gone: Spark's own scan gives bounds or an error.
            return file
        return replace(file, columns={**file.columns, **found})

    def _footer(self, jvm: Any, conf: Any, path: Any) -> ParquetFooter | OrcFooter:
        if self.table.provider == "orc":
            return OrcFooter.open(jvm, conf, path)
        return ParquetFooter.open(jvm, conf, path)


def _bounds(footer: ParquetFooter | OrcFooter, columns: Mapping[str, str]) -> dict[str, FileColumnBounds]:
    found = {name: footer.bounds(name, type_name) for name, type_name in columns.items()}
    certain = {name: certain_bounds(columns[name], *known) for name, known in found.items() if known is not None}
    return {name: _with_row_groups(footer, name, known) for name, known in certain.items()}


def _with_row_groups(footer: ParquetFooter | OrcFooter, name: str, known: FileColumnBounds) -> FileColumnBounds:
    if known.low is None:
        return known
    try:
        return replace(known, row_groups=row_group_runs(known.type_name, footer.row_groups(name, known.type_name)))
    except Exception:  # noqa: BLE001 - an odd text of pages fails in many ways, and runs are an estimate alone
        # The index of its pages cannot be read: no reader skips any.
        return known
