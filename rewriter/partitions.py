"""A table's partitions as the metastore names them, and which of them a key set keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
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


def kept(partitions: Iterable[str], restrictions: Iterable[tuple[str, KeySet]]) -> int:
    """How many partitions hold a key in every restricted column; one that cannot be read counts as kept."""
    wanted = [(column.lower(), _family(k), {_comparable(k, v) for v in k.values}) for column, k in restrictions]
    return sum(
        all(_may_match(values.get(column, ""), family, members) for column, family, members in wanted)
        for values in map(partition_values, partitions)
    )


def _family(keys: KeySet) -> str:
    if keys.type_name.endswith("int"):
        return "int"
    return "decimal" if keys.type_name.startswith("decimal") else keys.type_name


def _comparable(keys: KeySet, value: Key) -> object:
    return _parsed(str(value).lower() if isinstance(value, bool) else str(value), _family(keys))


def _may_match(value: str | None, family: str, members: set[object]) -> bool:
    if value is None:
        return False
    parsed = _parsed(value, family)
    return parsed is None or parsed in members


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
