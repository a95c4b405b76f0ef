"""A table's partitions as the metastore names them, and which of them a key set keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

from rewriter.catalog import Column
from rewriter.costs import PartitionCosts
from rewriter.cover import Cover
from rewriter.keys import Key, fits
from rewriter.keyset import KeySet

# How Hive spells null (and the empty string) in a partition's directory.
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def partition_values(spec: str) -> dict[str, str | None]:
    """The columns of a partition, from a row of SHOW PARTITIONS.

    >>> partition_values("ds=2026-01-01/region=a%2Fb")
    {'ds': '2026-01-01', 'region': 'a/b'}
    """
    pairs = (part.partition("=") for part in spec.split("/"))
    return {
        unquote(name).lower(): None if value == DEFAULT_PARTITION else unquote(value) for name, _, value in pairs
    }


def kept(partitions: Iterable[str], restrictions: Iterable[tuple[tuple[str, ...], KeySet]]) -> int:
    """How many partitions hold a key of every restriction; one that cannot be read counts as kept."""
    wanted = [_Restriction.of(columns, keys) for columns, keys in restrictions]
    return sum(
        all(restriction.may_match(values) for restriction in wanted)
        for values in map(partition_values, partitions)
    )


def kept_by(partitions: Iterable[str], cover: Cover) -> int:
    """How many partitions a cover keeps; one that cannot be read counts as kept."""
    types = {column: domain.type_name for box in cover.boxes for column, domain in box.domains}
    return sum(_may_hold(cover, types, values) for values in map(partition_values, partitions))


def partition_costs(partitions: Iterable[str], columns: Iterable[Column]) -> dict[str, PartitionCosts]:
    """Where the partitions lie along each of some columns; those whose value cannot be read are left out."""
    listed = [partition_values(spec) for spec in partitions]
    found = {}
    for column in columns:
        keys = (_key(values.get(column.name.lower(), ""), column.type_name) for values in listed)
        found[column.name] = PartitionCosts.of(column.type_name, [key for key in keys if key is not None])
    return found


@dataclass(frozen=True)
class _Restriction:
    """Keys of columns as the values that partitions are compared by."""

    columns: tuple[str, ...]
    type_names: tuple[str, ...]
    members: frozenset[tuple[object, ...]]

    @classmethod
    def of(cls, columns: Iterable[str], keys: KeySet) -> _Restriction:
        members = frozenset(tuple(map(_comparable, keys.type_names, row)) for row in keys.rows)
        return cls(tuple(column.lower() for column in columns), keys.type_names, members)

    def may_match(self, values: Mapping[str, str | None]) -> bool:
        held = [values.get(column, "") for column in self.columns]
        keys = [_key(value, type_name) for value, type_name in zip(held, self.type_names, strict=True)]
        unread = any(value is not None and key is None for value, key in zip(held, keys, strict=True))
        return unread or tuple(map(_comparable, self.type_names, keys)) in self.members


def _may_hold(cover: Cover, types: Mapping[str, str], values: Mapping[str, str | None]) -> bool:
    row: dict[str, Key | None] = {}
    for column, type_name in types.items():
        value = values.get(column.lower(), "")
        row[column] = _key(value, type_name)
        if value is not None and row[column] is None:
            return True
    return cover.holds(row)


def _comparable(type_name: str, value: Key | None) -> object:
    """A value that equals another one where Spark says so: 1.5 and 1.50 are one decimal."""
    return Decimal(value) if isinstance(value, str) and type_name.startswith("decimal") else value


def _key(value: str | None, type_name: str) -> Key | None:
    """The key that Spark casts the directory's text to; None for null, and where it is not certain."""
    if value is None or "\ufffd" in value:
        return None
    read = next((reader for pattern, reader in _READERS.items() if pattern in type_name), None)
    try:
        return read(value, type_name) if read is not None else value
    except (ValueError, InvalidOperation):
        return None


def _integer(value: str, type_name: str) -> int | None:
    found = int(value) if _INTEGER.fullmatch(value) else None
    return found if fits(type_name, found) else None


def _decimal(value: str, type_name: str) -> str | None:
    scale = int(type_name.rstrip(")").partition(",")[2])
    given = Decimal(value)
    exact = given.quantize(Decimal(1).scaleb(-scale))
    return f"{exact:f}" if exact == given else None


def _date(value: str, _: str) -> str:
    return date.fromisoformat(value).isoformat()


def _boolean(value: str, _: str) -> bool | None:
    return {"true": True, "false": False}.get(value.lower())


# By a part of the type's name; strings are what they are.
_READERS: dict[str, Callable[[str, str], Key | None]] = {
    "int": _integer,
    "decimal": _decimal,
    "date": _date,
    "boolean": _boolean,
}
