"""A table's partitions as the metastore names them, and which of them a key set keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

from rewriter.keys import Key, KeySet

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


@dataclass(frozen=True)
class _Restriction:
    """Keys of columns as the values that partitions are compared by."""

    columns: tuple[str, ...]
    families: tuple[str, ...]
    members: frozenset[tuple[object, ...]]

    @classmethod
    def of(cls, columns: Iterable[str], keys: KeySet) -> _Restriction:
        families = tuple(map(_family, keys.type_names))
        members = frozenset(tuple(map(_comparable, families, row)) for row in keys.rows)
        return cls(tuple(column.lower() for column in columns), families, members)

    def may_match(self, values: Mapping[str, str | None]) -> bool:
        held = [values.get(column, "") for column in self.columns]
        parsed = tuple(None if v is None else _parsed(v, f) for v, f in zip(held, self.families, strict=True))
        unread = any(v is not None and p is None for v, p in zip(held, parsed, strict=True))
        return unread or parsed in self.members


def _family(type_name: str) -> str:
    if type_name.endswith("int"):
        return "int"
    return "decimal" if type_name.startswith("decimal") else type_name


def _comparable(family: str, value: Key | None) -> object:
    if value is None:
        return None
    return _parsed(str(value).lower() if isinstance(value, bool) else str(value), family)


def _parsed(value: str, family: str) -> object:
    """The value that Spark casts the directory's text to, or None where that is not certain."""
    with suppress(ValueError, InvalidOperation):
        if family == "int":
            return int(value) if _INTEGER.fullmatch(value) else None
        if family == "date":
            return date.fromisoformat(value)
        if family == "decimal":
            return Decimal(value)
        if family == "boolean":
            return {"true": True, "false": False}.get(value.lower())
        return value
    return None
