"""Bounds of a column in a Parquet file, from the statistics of its row groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

from rewriter.domains.instants import INSTANT, LOCAL_TIME, is_certain, micros_text
from rewriter.domains.literals import TIMES

# Minimum, maximum and nulls; the first two as Spark casts them to strings, both None if all values are null.
KnownBounds: TypeAlias = tuple[str | None, str | None, int | None]

# The bounds of a column that a file does not have by exactly that name. Nulls, a default or a column `X` for `x`
# may be read in its place: the session decides, and the table, which may be created anew over the same files.
ABSENT: KnownBounds = (None, None, None)

# Spark reads a file with more row groups: each takes a few milliseconds here.
ROW_GROUPS_MAX = 1_000

_EPOCH = date(1970, 1, 1)

# The declarations by which Spark, Hive, Impala, Trino and Arrow write a column of the type. Spark reads columns of
# other declarations with a cast.
_DECLARED = {
    "tinyint": r"int32 NAME \(INTEGER\(8,true\)\)",
    "smallint": r"int32 NAME \(INTEGER\(16,true\)\)",
    "int": r"int32 NAME(?: \(INTEGER\(32,true\)\))?",
    "bigint": r"int64 NAME(?: \(INTEGER\(64,true\)\))?",
    "boolean": r"boolean NAME",
    "date": r"int32 NAME \(DATE\)",
    # No INT96: a setting moves those that Impala wrote into the session's time zone. And no other units.
    INSTANT: r"int64 NAME \(TIMESTAMP\(MICROS,true\)\)",
    LOCAL_TIME: r"int64 NAME \(TIMESTAMP\(MICROS,false\)\)",
    "string": r"binary NAME \(STRING\)",
    "decimal": r"(?:int32|int64|binary|fixed_len_byte_array\(\d+\)) NAME \(DECIMAL\(PARAMETERS\)\)",
}


class _InsufficientError(Exception):
    """The footer gives no certain bounds."""


# Row groups whose pages are asked for, each by a read of its own: a file of 2 GB. In a file with more of them, the
# bounds are those of the row groups.
PAGES_ASKED_MAX = 16

# Lists in the text of Parquet's index of pages: bytes in hexadecimal, nothing for a page of nulls alone.
_PAGE_BOUNDS = re.compile(r"min_values:\[([^\]]*)\], max_values:\[([^\]]*)\]", re.ASCII)
# Longer values are cut there.
_CUT = "..."


@dataclass(frozen=True)
class ParquetFooter:
    """An open file with its footer."""

    jvm: Any
    reader: Any
    rows: int
    schema: Any
    blocks: Any

    @classmethod
    def open(cls, jvm: Any, conf: Any, path: Any) -> ParquetFooter:
        """Reads the footer of a file, by the file system of its path."""
        parquet = jvm.org.apache.parquet.hadoop
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, conf))
        footer = reader.getFooter()
        return cls(jvm, reader, reader.getRecordCount(), footer.getFileMetaData().getSchema(), footer.getBlocks())

    def close(self) -> None:
        """Closes the file."""
        self.reader.close()

    def bounds(self, name: str, type_name: str) -> KnownBounds | None:
        """The bounds of a column of exactly that name and type; None where Spark has to read it."""
        if not self.schema.containsField(name):
            return ABSENT
        # Statistics have one name for the nested column `a`.`b` and for `a.b`.
        if "." in name:
            return None
        physical = _physical_type(self.schema.getType(name).toString(), name, type_name)
        if physical is None and type_name in TIMES:
            return ABSENT
        if physical is None or self.blocks.size() > ROW_GROUPS_MAX:
            return None
        try:
            return _merged(type_name, physical, [_of_chunk(chunk) for chunk in self._chunks(name)])
        except _InsufficientError:
            return None

    def row_groups(self, name: str, type_name: str) -> list[tuple[str, str]]:
        """The bounds of its pages, where the file has an index of them, or of its row groups; in their order.

        The column must have bounds. A page's texts may be cut, and so are its bounds.
        """
        physical = _physical_type(self.schema.getType(name).toString(), name, type_name)
        if physical is None:
            return []
        chunks = list(self._chunks(name))
        are_asked = len(chunks) <= PAGES_ASKED_MAX
        found = chain.from_iterable((self._pages(chunk) if are_asked else ()) or _whole(chunk) for chunk in chunks)
        values = ((_value(physical, type_name, low), _value(physical, type_name, high)) for low, high in found)
        return [(_text(type_name, low), _text(type_name, high)) for low, high in values]

    def _pages(self, chunk: Any) -> list[tuple[bytes, bytes]]:
        """The bounds of a chunk's pages, fetched as one text: each value alone would be a call into the JVM."""
        index = self.reader.readColumnIndex(chunk)
        if index is None:
            return []
        converter = self.jvm.org.apache.parquet.format.converter.ParquetMetadataConverter
        stored = converter.toParquetColumnIndex(chunk.getPrimitiveType(), index)
        found = _PAGE_BOUNDS.search(stored.toString()) if stored is not None else None
        if found is None:
            return []
        lows, highs = (texts.split(", ") for texts in found.groups())
        return [(_bytes(low), _bytes(high)) for low, high in zip(lows, highs, strict=True) if low and high]

    def _chunks(self, name: str) -> Iterator[Any]:
        """The column's part of each row group."""
        position = self.schema.getFieldIndex(name)
        for number in range(self.blocks.size()):
            chunks = self.blocks.get(number).getColumns()
            # Nested columns before it shift the position, by the same number in all row groups.
            position = _position(chunks, name, position)
            yield chunks.get(position)


def _position(chunks: Any, name: str, guess: int) -> int:
    for position in chain((guess,), range(chunks.size())):
        if chunks.get(position).getPath().toDotString() == name:
            return position
    raise _InsufficientError


def _of_chunk(chunk: Any) -> tuple[bytes | None, bytes | None, int]:
    statistics = chunk.getStatistics()
    if statistics is None or not statistics.isNumNullsSet():
        raise _InsufficientError
    nulls = statistics.getNumNulls()
    if statistics.hasNonNullValue():
        return bytes(statistics.getMinBytes()), bytes(statistics.getMaxBytes()), nulls
    # Either all values are null, or the statistics leave some out.
    if nulls != chunk.getValueCount():
        raise _InsufficientError
    return None, None, nulls


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removesuffix(_CUT))


def _whole(chunk: Any) -> list[tuple[bytes, bytes]]:
    low, high, _ = _of_chunk(chunk)
    return [(low, high)] if low is not None and high is not None else []


def _merged(type_name: str, physical: str, chunks: list[tuple[bytes | None, bytes | None, int]]) -> KnownBounds:
    lows = [_value(physical, type_name, low) for low, _, _ in chunks if low is not None]
    highs = [_value(physical, type_name, high) for _, high, _ in chunks if high is not None]
    nulls = sum(count for _, _, count in chunks)
    if not lows:
        return None, None, nulls
    low, high = min(lows), max(highs)
    if low > high:
        raise _InsufficientError
    return _text(type_name, low), _text(type_name, high), nulls


def _physical_type(declaration: str, name: str, type_name: str) -> str | None:
    family, _, parameters = type_name.rstrip(")").partition("(")
    pattern = _DECLARED[family].replace("NAME", re.escape(name)).replace("PARAMETERS", parameters)
    found = re.fullmatch(rf"(?:optional|required) (?={pattern}$)(\w+).*", declaration, re.DOTALL)
    return found and found[1]


def _value(physical: str, type_name: str, stored: bytes) -> Any:
    if type_name == "string":
        # The order of bytes is the order of code points. A byte that is no text is replaced by U+FFFD later, which
        # makes the bound unfit.
        return stored
    if physical in {"int32", "int64", "boolean"}:
        return int.from_bytes(stored, "little", signed=physical != "boolean")
    return int.from_bytes(stored, "big", signed=True)


def _text(type_name: str, value: Any) -> str:
    if type_name == "string":
        return str(value, errors="replace")
    if type_name == "boolean":
        return "true" if value else "false"
    if type_name == "date":
        return date_text(value)
    if type_name == LOCAL_TIME:
        # Other times are no certain bounds.
        return micros_text(value) if is_certain(value) else ""
    if type_name.startswith("decimal"):
        scale = int(type_name.rstrip(")").rpartition(",")[2])
        # From text, since arithmetic on decimals rounds to 28 digits.
        return f"{Decimal(f'{value}E-{scale}'):f}"
    return str(value)


def date_text(days: int) -> str:
    """A date from its days since 1970; a mere sign where Python has no such date."""
    try:
        return (_EPOCH + timedelta(days)).isoformat()
    except OverflowError:
        return "-" if days < 0 else "+"
