"""Skewed columns and values of a table, as Hive's SKEWED BY names them, and the table properties that keep them.

Spark's catalog has no place for them. The proxy writes the properties, and the pipeline's loads read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rewriter.domains.literals import UnreadableKeyError, literal

COLUMNS_PROPERTY: Final = "starpruner.skewed.by"
VALUES_PROPERTY: Final = "starpruner.skewed.on"
# "true" if loads give the skewed values files of their own, "false" after NOT STORED AS DIRECTORIES.
OWN_FILES_PROPERTY: Final = "starpruner.skewed.own-files"
PROPERTIES: Final = (COLUMNS_PROPERTY, VALUES_PROPERTY, OWN_FILES_PROPERTY)
# A property holds that many characters in metastores from before Hive 2.3 (HIVE-12274).
PROPERTY_CHARS_MAX: Final = 4_000


class SkewPropertyError(ValueError):
    """Properties that cannot be written or read; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class SkewedBy:
    """The skewed columns of a table and their skewed tuples, each value as a text; null is None."""

    columns: tuple[str, ...]
    tuples: tuple[tuple[str | None, ...], ...]
    has_own_files: bool = True

    def properties(self) -> dict[str, str]:
        """The table properties. Raises SkewPropertyError.

        >>> SkewedBy(("x", "y"), (("1", "a"), ("2", "b"))).properties()["starpruner.skewed.on"]
        '[["1", "a"], ["2", "b"]]'
        """
        for text in (*self.columns, *(value for values in self.tuples for value in values)):
            if text is not None and not _is_plain(text):
                raise SkewPropertyError(
                    f"{text!r} cannot be kept in a table property: a quote, a backslash, a $ or a control"
                    " character reads differently from one setting to the next"
                )
        found = {
            COLUMNS_PROPERTY: json.dumps(self.columns, ensure_ascii=False),
            VALUES_PROPERTY: json.dumps(self.tuples, ensure_ascii=False),
            OWN_FILES_PROPERTY: "true" if self.has_own_files else "false",
        }
        longest = max(map(len, found.values()))
        if longest > PROPERTY_CHARS_MAX:
            raise SkewPropertyError(
                f"the skewed columns or values take {longest} characters, and a table property holds"
                f" {PROPERTY_CHARS_MAX} in every metastore"
            )
        return found


def skewed_by(properties: Mapping[str, str]) -> SkewedBy | None:
    """The skew that the properties keep; None where they keep none. Raises SkewPropertyError.

    Anyone may set a property, so none is trusted to be well formed.
    """
    if COLUMNS_PROPERTY not in properties:
        return None
    columns = [name for name in _listed(properties, COLUMNS_PROPERTY) if isinstance(name, str)]
    tuples = [_tuple(values, len(columns)) for values in _listed(properties, VALUES_PROPERTY)]
    if not columns or len(columns) < len(_listed(properties, COLUMNS_PROPERTY)):
        raise SkewPropertyError(f"{COLUMNS_PROPERTY} is no list of column names")
    has_own_files = properties.get(OWN_FILES_PROPERTY, "true").lower() != "false"
    return SkewedBy(tuple(columns), tuple(tuples), has_own_files)


def _listed(properties: Mapping[str, str], name: str) -> list[object]:
    try:
        found = json.loads(properties.get(name, "[]"))
    except (ValueError, RecursionError) as error:
        raise SkewPropertyError(f"{name} is no JSON") from error
    if not isinstance(found, list):
        raise SkewPropertyError(f"{name} is no list")
    return found


def _tuple(values: object, count: int) -> tuple[str | None, ...]:
    found = values if isinstance(values, list) else []
    texts = tuple(value for value in found if value is None or isinstance(value, str))
    if len(found) != count or len(texts) != count:
        raise SkewPropertyError(f"{VALUES_PROPERTY} is no list of lists with {count} texts each")
    return texts


def _is_plain(text: str) -> bool:
    try:
        return literal("string", text) == f"'{text}'"
    except UnreadableKeyError:
        return False
