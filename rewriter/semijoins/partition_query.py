"""Query for the partitions of a fact that can match: Spark is asked by the statement's own condition.

Keys tell the partitions only where the fact's column equals them. For any other condition over partition columns,
such as `to_date(f.ds) = d.day` or `f.ds BETWEEN p.first AND p.last`, the values of all known partitions are sent
as rows in the fact's place, and Spark, with the session's own settings, answers those that the condition lets
through. The answer is never longer than the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeySet
from rewriter.domains.literals import literals
from rewriter.domains.partition_matches import PartitionMatches, PartitionRow
from rewriter.semijoins.key_query import KeyColumn, KeySetQuery, Row, key_set_query
from rewriter.vocabulary.identifiers import TableName, quoted
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Partitions that are asked about in all queries of one plan, each of which holds their values: some seconds, and
# tens of MB of text.
PARTITIONS_ASKED_MAX: Final = 200_000


@dataclass(frozen=True)
class PartitionsQuery(KeySetQuery):
    """A query for the partitions of a list that can match; its rows are those of a KeySetQuery.

    Null is among the values that are asked for where the list has it, as for the default partition, or where it
    may stand for a row that an outer join padded.
    """

    asked: frozenset[PartitionRow] = field(default=frozenset(), compare=False)
    # True if the fact's columns may be padded with nulls before the condition is tested.
    may_be_padding: bool = False
    # The query with `partitions` in place of their values, for users.
    outline: str = field(default="", compare=False)

    def read(self, rows: Sequence[Row]) -> Keys | SkipReason:
        """The partitions in an answer, or the reason why they cannot be used."""
        found = super().read(rows)
        if not isinstance(found, KeySet):
            return found
        matching, padding = frozenset(found.rows), _padding(self.columns)
        if not matching <= self.asked:
            return SkipReason.UNREADABLE_KEY
        if self.may_be_padding and padding in matching:
            return SkipReason.NULL_SAFE_OVER_NULLS
        if matching >= self.asked - {padding}:
            return SkipReason.NOTHING_TO_SKIP
        return PartitionMatches(found.type_names, self.asked, matching, found.assumptions)


@dataclass(frozen=True)
class PartitionList:
    """The values of some partition columns in a table's partitions, as a FROM item under the fact's own name."""

    alias: str
    # The fact's names for the columns in its block, and their types.
    columns: tuple[tuple[str, str], ...]
    # The values that are asked for.
    values: frozenset[PartitionRow]
    # If the fact has computed columns: the name of the item they are computed from, and the expressions by name.
    within: str = ""
    computed: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> list[str]:
        """The columns as a key query selects them."""
        return [f"{self.alias}.{quoted(name)}" for name in self._names]

    @property
    def _names(self) -> list[str]:
        """The names of the columns in the list, which no condition names if others are computed of them."""
        names = [name for name, _ in self.columns]
        return [f"starpruner_{number}" for number, _ in enumerate(names, 1)] if self.computed else names

    def with_padding(self) -> PartitionList:
        """The list with the nulls of a row that an outer join padded.

        They are asked about only where needed: `to_date(concat_ws('-', f.year, f.month))` of nulls is an error.
        """
        return replace(self, values=self.values | {_padding(self.columns)})

    def source(self) -> str:
        """The list for a FROM. Raises UnreadableKeyError for a value without a certain literal.

        >>> PartitionList("f", (("ds", "string"),), frozenset({("a",)})).source()
        "(VALUES ('a')) AS f(`ds`)"
        """
        return self._item(f"VALUES {self._values}")

    @cached_property
    def _values(self) -> str:
        rows = sorted(self.values, key=lambda row: [(value is not None, value) for value in row])
        by_column = [
            [_typed(type_name, text) for text in literals(type_name, (row[index] for row in rows))]
            for index, (_, type_name) in enumerate(self.columns)
        ]
        return ", ".join(f"({', '.join(texts)})" for texts in zip(*by_column, strict=True))

    def outline(self) -> str:
        """The same for users, without the values."""
        return self._item("partitions")

    def _item(self, rows: str) -> str:
        names = [quoted(name) for name, _ in self.columns]
        listed = f"({rows}) AS {self.within or self.alias}({', '.join(names)})"
        if not self.computed:
            return listed
        hidden = [f"{self.within}.{name} AS {quoted(key)}" for name, key in zip(names, self._names, strict=True)]
        shown = [f"{text} AS {quoted(name)}" for name, text in self.computed]
        every = [*shown, *hidden]
        return f"(SELECT {', '.join(every)} FROM {listed}{self._padded(len(every))}) AS {self.alias}"

    def _padded(self, columns: int) -> str:
        """A row of nulls, if the list has one for padding.

        An outer join around the SELECT pads its computed columns; one within pads the columns they are made from.
        """
        return (
            f" UNION ALL SELECT {', '.join(['NULL'] * columns)}" if _padding(self.columns) in self.values else ""
        )


@dataclass
class AskedLists:
    """The lists and the queries of one plan: statements may ask the same for hundreds of scans."""

    # By all that they are made of.
    lists: dict[tuple[object, ...], PartitionList | Refusal] = field(default_factory=dict)
    queries: dict[tuple[object, ...], PartitionsQuery] = field(default_factory=dict)
    values_left: int = field(default_factory=lambda: PARTITIONS_ASKED_MAX)


def partitions_query(  # noqa: PLR0913 - the parts of a query
    listed: PartitionList,
    *,
    source: str,
    outline: str,
    keys: Sequence[str],
    filters: Sequence[str],
    tables: frozenset[TableName],
    may_be_padding: bool,
    may_fail: bool,
) -> PartitionsQuery:
    """Compose a query for the partitions that match. `outline` is the source without the list's values."""
    # A null that matches is a match.
    columns = [KeyColumn(type_name, null_safe=True) for _, type_name in listed.columns]
    rows_max = len(listed.values)
    query, shown = (
        key_set_query(source=text, keys=keys, columns=columns, filters=filters, rows_max=rows_max, tables=tables)
        for text in (source, outline)
    )
    return PartitionsQuery(
        query.sql,
        query.columns,
        rows_max,
        assumes=query.assumes,
        tables=tables,
        sql_with_repeats=query.sql_with_repeats,
        may_fail=may_fail,
        asked=listed.values,
        may_be_padding=may_be_padding,
        outline=shown.sql_with_repeats,
    )


def _padding(columns: Iterable[object]) -> PartitionRow:
    return tuple(None for _ in columns)


def _typed(type_name: str, text: str) -> str:
    return f"CAST(NULL AS {type_name})" if text == "NULL" else text
