"""The clause SKEWED BY (x, y) ON ((1, 'a'), ..): its columns and tuples, checked as far as the text tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.statements.ddl_items import GROUP, NUMBER, STRING, Item, separated, shape
from rewriter.catalog.skewed_by import SkewedBy, SkewPropertyError
from rewriter.domains.key_texts import key_of_text
from rewriter.domains.literals import UnreadableKeyError, is_key_type

_WHOLE: Final = re.compile(r"([0-9]+)[LSY]?", re.IGNORECASE)
_FRACTION: Final = re.compile(r"([0-9]+\.[0-9]+|[0-9]+(?=BD))(?:BD)?", re.IGNORECASE)

# Types by their other names, and the precision and scale of a decimal that says none.
_TYPE_NAMES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?")
# Types of Spark whose equality is not certain (rewriter/domains/literals.py). Types that are not known here are
# left to Spark, and to the load.
_UNCERTAIN_TYPES: Final = frozenset(
    """
    double float real binary char character varchar timestamp timestamp_ntz timestamp_ltz interval array map struct
    variant void
    """.split()
)


class SkewRefusedError(ValueError):
    """A statement about skewed values that cannot be done; the message is a sentence."""


@dataclass(frozen=True)
class SkewClause:
    """The columns and tuples as the text has them; a value is its text, and null is None."""

    columns: tuple[str, ...]
    tuples: tuple[tuple[str | None, ...], ...]

    @classmethod
    def read(cls, items: Sequence[Item]) -> SkewClause | None:
        """The clause in the items SKEWED BY () ON () ..; None where the grammar has another form."""
        names = [part[0].name if len(part) == 1 else None for part in separated(items[2].members)]
        parts = separated(items[4].members)
        is_nested = [len(part) == 1 and part[0].symbol == GROUP for part in parts]
        if any(is_nested) and not all(is_nested):
            return None
        lists = [separated(part[0].members) for part in parts] if all(is_nested) else [[part] for part in parts]
        tuples = [tuple(_value(part) for part in values) for values in lists]
        columns = tuple(name for name in names if name is not None)
        if len(columns) < len(names) or any(isinstance(value, _Unread) for values in tuples for value in values):
            return None
        known = [tuple(value for value in values if not isinstance(value, _Unread)) for values in tuples]
        return cls(columns, tuple(dict.fromkeys(known)))

    def kept(
        self, types: Mapping[str, str] | None = None, partition_columns: Collection[str] = ()
    ) -> dict[str, str]:
        """The table properties that keep the clause. Raises SkewRefusedError.

        `types` are those of the table's own columns, and all names are in lower case.
        """
        repeated = [name for name, count in Counter(map(str.lower, self.columns)).items() if count > 1]
        if repeated:
            raise SkewRefusedError(f"SKEWED BY names the column {repeated[0]} more than once")
        for name in self.columns:
            self._check_column(name, types, partition_columns)
        count = len(self.columns)
        for values in self.tuples:
            if len(values) != count:
                raise SkewRefusedError(
                    f"SKEWED BY ({', '.join(self.columns)}) has a skewed value of {len(values)} parts;"
                    f" expected {count}, one of each column"
                )
            for name, value in zip(self.columns, values, strict=True):
                if value is None and count > 1:
                    raise SkewRefusedError(
                        f"SKEWED BY ({', '.join(self.columns)}): NULL can have files of its own where one column"
                        " is skewed; leave the tuples with a NULL out"
                    )
                _check_value(name, value, (types or {}).get(name.lower(), ""))
        try:
            return SkewedBy(self.columns, self.tuples).properties()
        except SkewPropertyError as error:
            raise SkewRefusedError(f"SKEWED BY: {error}; name them to each load (--skewed-value)") from error

    def _check_column(
        self, name: str, types: Mapping[str, str] | None, partition_columns: Collection[str]
    ) -> None:
        if name.lower() in partition_columns:
            raise SkewRefusedError(
                f"SKEWED BY ({name}): a partition column has one value in each file already; name another column"
            )
        if types is None:
            return
        if name.lower() not in types:
            raise SkewRefusedError(f"SKEWED BY ({name}): the table has no such column; it has {', '.join(types)}")
        word = types[name.lower()].partition("(")[0].lower()
        if word in _UNCERTAIN_TYPES:
            raise SkewRefusedError(
                f"SKEWED BY ({name}): its type, {word}, has no equality that can skip files with certainty; these"
                " have: tinyint to bigint, string, date, boolean, decimal"
            )


class _Unread:
    """A value that is no constant, or one of a kind that is not read here."""


def _value(items: Sequence[Item]) -> str | _Unread | None:
    """The text of a constant; None is null."""
    symbols = shape(items).split()
    last = items[-1].text if items else ""
    if symbols in ([STRING], ["DATE", STRING]):
        # A quote or a backslash inside the quotes is refused later on: it depends on settings how it reads.
        return last[1:-1]
    if symbols in (["TRUE"], ["FALSE"]):
        return last.lower()
    if symbols == ["NULL"]:
        return None
    if symbols in ([NUMBER], ["-", NUMBER]):
        number = _WHOLE.fullmatch(last) or _FRACTION.fullmatch(last)
        return _Unread() if number is None else "".join(item.text for item in items[:-1]) + number[1]
    return _Unread()


def _check_value(name: str, value: str | None, written_type: str) -> None:
    type_name = _type_name(written_type)
    if value is None or not is_key_type(type_name):
        return
    try:
        _ = key_of_text(type_name, value)
    except UnreadableKeyError as error:
        raise SkewRefusedError(f"SKEWED BY: {value!r} cannot be read as a value of {name} {type_name}") from error


def _type_name(written: str) -> str:
    """A type as Spark's DESCRIBE writes it."""
    text = "".join(written.lower().split())
    decimal = _DECIMAL.fullmatch(text)
    if decimal is not None:
        return f"decimal({decimal[1] or 10},{decimal[2] or 0})"
    return _TYPE_NAMES.get(text, text)
