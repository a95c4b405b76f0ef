"""Keys of partitions: bytes that are ordered as the partitions' values, column by column.

A key is the fields of a partition's columns, one after the other. The first byte of a field is 0 for null and 1
for a value, so nulls come first. No field is the start of another one. So all keys that share a value of the
leading column are neighbours, and a field is found without decoding those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rewriter.domains.literals import Key
from rewriter.partitions.value_encoding import Codec, NotIndexableError, codec

# Hive's name for null (and the empty string) in a partition's directory.
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

NULL = b"\x00"
VALUE = b"\x01"
# Greater than every field, and so than every key.
END = b"\x02"

# Hive escapes single ASCII characters. A code from 80 up is a Latin-1 character to Hive, and part of a UTF-8
# sequence to others.
_ESCAPED = re.compile(r"(?:[^%]|%[0-7][0-9A-Fa-f])*+")
_ESCAPE = re.compile(r"%(..)")


@dataclass(frozen=True)
class PartitionKeys:
    """The keys of one table's partitions. Raises NotIndexableError for a type that is not ordered with certainty.

    An entry is a key with the partition's own name behind it: two names may have one value, as `k=1` and `k=01`.
    """

    columns: tuple[str, ...]
    type_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self._codecs) != len(self.columns):
            raise NotIndexableError(f"{len(self.columns)} columns and {len(self._codecs)} types")

    @cached_property
    def _codecs(self) -> tuple[Codec, ...]:
        return tuple(map(codec, self.type_names))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.lower(): position for position, column in enumerate(self.columns)}

    def position(self, column: str) -> int:
        """The number of the column with the name, in any case. Raises NotIndexableError."""
        try:
            return self._positions[column.lower()]
        except KeyError:
            raise NotIndexableError(f"{column} is not a partition column") from None

    def encode(self, values: Sequence[Key | None]) -> bytes:
        """The key of a partition with the values. Raises NotIndexableError."""
        return b"".join(self.encode_field(column, value) for column, value in enumerate(values))

    def encode_field(self, column: int, value: Key | None) -> bytes:
        """The field of one column. Raises NotIndexableError."""
        return NULL if value is None else VALUE + self._codecs[column].encode(value)

    def decode(self, key: bytes) -> tuple[Key | None, ...]:
        """The values of a key or an entry."""
        return tuple(self.decode_field(column, field) for column, field in enumerate(self._fields(key)))

    def decode_field(self, column: int, field: bytes) -> Key | None:
        """The value of a field."""
        return None if field == NULL else self._codecs[column].decode(field[1:])

    def field(self, key: bytes, column: int) -> bytes:
        """The field of one column in a key or an entry."""
        start = 0
        for before in range(column):
            start = self.field_end(key, start, before)
        return key[start : self.field_end(key, start, column)]

    def fields(self, keys: Iterable[bytes], column: int) -> Iterator[bytes]:
        """The field of one column in each of many keys or entries."""
        if column:
            yield from (self.field(key, column) for key in keys)
            return
        null, end = NULL[0], self._codecs[0].end
        for key in keys:
            yield key[: 1 if key[0] == null else end(key, 1)]

    def is_field(self, column: int, prefix: bytes) -> bool:
        """True if the bytes are a whole field of the column, and not the start of several."""
        return self.field_end(prefix, 0, column) == len(prefix)

    def entry(self, spec: str) -> bytes:
        r"""The entry of a partition, from a row of SHOW PARTITIONS. Raises NotIndexableError.

        >>> PartitionKeys(("k",), ("tinyint",)).entry("k=01")
        b'\x01\x81k=01'
        """
        parts = spec.split("/")
        if len(parts) != len(self.columns):
            raise NotIndexableError(f"{len(parts)} values for {len(self.columns)} columns")
        fields = [self._read(column, part) for column, part in enumerate(parts)]
        try:
            return b"".join((*fields, spec.encode()))
        except UnicodeEncodeError:
            raise NotIndexableError("not certainly a partition's name") from None

    def spec(self, entry: bytes) -> str:
        """The partition's own name."""
        *_, end = self._ends(entry)
        return entry[end:].decode()

    def _read(self, column: int, part: str) -> bytes:
        name, _, text = part.partition("=")
        if name != self.columns[column] and _unescaped(name).lower() != self.columns[column].lower():
            raise NotIndexableError(f"expected a value of {self.columns[column]}")
        if text == DEFAULT_PARTITION:
            return NULL
        if not text:
            raise NotIndexableError(
                "Spark writes an empty string as null; what an empty name means is not certain"
            )
        return VALUE + self._codecs[column].encode(self._codecs[column].read(_unescaped(text)))

    def _fields(self, key: bytes) -> Iterator[bytes]:
        start = 0
        for end in self._ends(key):
            yield key[start:end]
            start = end

    def _ends(self, key: bytes) -> Iterator[int]:
        end = 0
        for column in range(len(self.columns)):
            end = self.field_end(key, end, column)
            yield end

    def field_end(self, key: bytes, start: int, column: int) -> int:
        """The end of the column's field; an offset behind the key if the field is not whole."""
        return start + 1 if key[start] == NULL[0] else self._codecs[column].end(key, start + 1)


def _unescaped(text: str) -> str:
    """The text of a directory's name as Hive reads it. Raises NotIndexableError if readers differ."""
    if "%" not in text:
        return text
    if not _ESCAPED.fullmatch(text):
        raise NotIndexableError("an escape that readers of partition names take differently")
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
