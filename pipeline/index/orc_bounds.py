"""Bounds of a column in an ORC file, from the statistics of the whole file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.index.parquet_bounds import ABSENT, KnownBounds, date_text
from rewriter.domains.literals import TIMES

# ORC's own writers in Java since 2017. Earlier ones have had wrong statistics of strings (HIVE-8732), and other
# writers number their versions by themselves. Spark reads the files of all these instead.
_KNOWN_WRITERS = frozenset({"ORC_135", "ORC_517", "ORC_203", "ORC_14"})

# A file of 16 GB in stripes of 64 MB. Each takes a few calls into the JVM.
STRIPES_MAX = 256

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True)
class OrcFooter:
    """An open file with its footer."""

    reader: Any
    rows: int
    schema: Any
    statistics: Any

    @classmethod
    def open(cls, jvm: Any, conf: Any, path: Any) -> OrcFooter:
        """Reads the footer of a file, by the file system of its path."""
        orc = jvm.org.apache.orc.OrcFile
        reader = orc.createReader(path, orc.readerOptions(conf))
        return cls(reader, reader.getNumberOfRows(), reader.getSchema(), reader.getStatistics())

    def close(self) -> None:
        """Closes the file."""
        self.reader.close()

    def bounds(self, name: str, type_name: str) -> KnownBounds | None:
        """The bounds of a column of exactly that name and type; None where Spark has to read it."""
        position = self.schema.getFieldNames().indexOf(name)
        # Old Hive writers call columns `_col0`, and only the table tells which column that is. The JVM's time zone
        # decides how a timestamp is read, and executors may have others.
        if position < 0 or name.startswith("_col") or type_name in TIMES:
            return ABSENT
        if self.reader.getWriterVersion().toString() not in _KNOWN_WRITERS:
            return None
        column = self.schema.getChildren().get(position)
        if column.toString() != type_name:
            return None
        # The reader reports no values for a file without statistics.
        if self.statistics[0].getNumberOfValues() != self.rows:
            return None
        statistics = self.statistics[column.getId()]
        values = statistics.getNumberOfValues()
        if values == 0:
            return None, None, self.rows
        known = _low_and_high(statistics, type_name)
        return known and (*known, self.rows - values)

    def row_groups(self, name: str, type_name: str) -> list[tuple[str, str]]:
        """The bounds of its stripes, in their order, of a column that has bounds."""
        number = self.schema.getChildren().get(self.schema.getFieldNames().indexOf(name)).getId()
        stripes = self.reader.getStripeStatistics()
        if not 1 < stripes.size() <= STRIPES_MAX:
            return []
        of_stripes = [stripes.get(stripe).getColumnStatistics()[number] for stripe in range(stripes.size())]
        found = (_low_and_high(one, type_name) for one in of_stripes if one.getNumberOfValues())
        return [known for known in found if known is not None]


def _low_and_high(statistics: Any, type_name: str) -> tuple[str, str] | None:
    if type_name in _INTEGERS:
        low, high = statistics.getMinimum(), statistics.getMaximum()
        # Without recorded values these are the greatest and the least number.
        return (str(low), str(high)) if low <= high else None
    if type_name == "boolean":
        return ("false" if statistics.getFalseCount() else "true"), (
            "true" if statistics.getTrueCount() else "false"
        )
    if type_name == "date":
        low, high = statistics.getMinimumDayOfEpoch(), statistics.getMaximumDayOfEpoch()
        return (date_text(low), date_text(high)) if low <= high else None
    if type_name == "string":
        # For long strings the file has a lesser and a greater string in place of the least and the greatest.
        return statistics.getLowerBound(), statistics.getUpperBound()
    low, high = statistics.getMinimum(), statistics.getMaximum()
    return (low.toString(), high.toString()) if low is not None and high is not None else None
