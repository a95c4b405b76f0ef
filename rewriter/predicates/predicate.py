"""Conditions in Spark SQL for keys and covers, the parts of every predicate that is inserted.

Every inserted condition has the form `cover OR changed assumption`. It is true for all rows in the cover, and for
every row if an assumption no longer holds: the type of a column, or the value of a session function. Example:
``(`ds` IN ('a') OR typeof(`ds`) <> 'string')``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter

from rewriter.domains.cover import Cover
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.domains.positions import line
from rewriter.predicates.metastore_filter import can_compare, can_compare_range
from rewriter.vocabulary.identifiers import Column, quoted

# Boxes that are intersected with one another: all keys of three paired reducers would be billions.
_BOXES_INTERSECTED_MAX = 10_000


@dataclass(frozen=True)
class Restriction:
    """Columns of a fact, and the keys that they may hold together."""

    columns: tuple[Column, ...]
    keys: Keys

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def cover(self) -> Cover:
        """The rows that the restriction lets through."""
        return self.keys.cover(self.names)

    def of_columns(self, names: AbstractSet[str]) -> Restriction | None:
        """The restriction on some of its columns, given in lower case; None if it has none of them."""
        places = [i for i, name in enumerate(self.names) if name.lower() in names]
        if not places:
            return None
        if len(places) == len(self.columns) or not isinstance(self.keys, KeySet):
            return self
        rows = {tuple(row[i] for i in places) for row in self.keys.rows}
        types = tuple(self.keys.type_names[i] for i in places)
        # Nulls that match nothing were dropped when the key set was made.
        keys = KeySet.of(types, rows, null_safe=(True,) * len(places))
        keys = replace(keys, assumptions=self.keys.assumptions)
        return Restriction(tuple(self.columns[i] for i in places), keys)


@dataclass(frozen=True)
class Predicate:
    """A condition on columns of a fact scan that every key satisfies."""

    sql: str
    # True if the keys alone satisfy it.
    exact: bool
    # The rows that the metastore, Iceberg, or else Spark's planner selects by it.
    cover: Cover
    # True if Spark sends a part of it to the metastore.
    is_sent_to_metastore: bool = False


def no_rows(changed: Sequence[str]) -> Predicate:
    """The condition that no row satisfies unless an assumption has changed."""
    sql = f"({' OR '.join(['FALSE', *changed])})" if changed else "FALSE"
    return Predicate(sql, exact=True, cover=Cover.none())


def type_changed(column: Column) -> str:
    """A condition that holds only if the column has another type now."""
    return f"typeof({quoted(column.name)}) <> '{column.type_name}'"


def changed_assumptions(restrictions: Sequence[Restriction]) -> list[str]:
    """Conditions of which one holds if an assumption of the keys no longer does."""
    types = {column.name: column.type_name for restriction in restrictions for column in restriction.columns}
    # Without a single key no row matches, whatever the type. Two sets without a common key still need the types:
    # in a column of another type 'a' and 'A' may be equal.
    if any(restriction.keys.is_none for restriction in restrictions):
        types = {}
    assumed = (assumption for restriction in restrictions for assumption in restriction.keys.assumptions)
    return [
        *(type_changed(Column(name, type_name)) for name, type_name in types.items()),
        *(f"{function} <> {value}" for function, value in dict.fromkeys(assumed)),
    ]


def reader_guards(restrictions: Iterable[Restriction]) -> list[str]:
    """Conditions to OR with strings that a reader of files compares wrongly, so that it leaves them to Spark.

    The keys of any table need guards: Spark infers from an equality that a fact's condition holds for the small
    side too, and lets the small side's reader skip rows by it.
    """
    found = (_guards(quoted(name), keys) for name, keys in _texts(restrictions))
    return list(dict.fromkeys(chain.from_iterable(found)))


def require_kept_by_delta(restrictions: Iterable[Restriction]) -> None:
    """Raise UnreadableKeyError for a text that the log of a Delta table may not keep as it is.

    The log has the first 32 characters of texts, and writers before Delta 3.3 cut between the two halves of a
    character of four bytes, or end a bound too low behind one (delta-io/delta 3430). For CHAR, which DESCRIBE
    shows as a string here, it has the padded text. Spark infers such a filter for each table from an equality.
    """
    if any(_may_be_cut(key) for _, keys in _texts(restrictions) for key in keys):
        raise UnreadableKeyError("Delta's log may have other bounds of the text")


def _may_be_cut(key: Key | None) -> bool:
    return isinstance(key, str) and (len(key.encode("utf-16-le")) // 2 > _UNITS_KEPT or key.endswith(" "))


# UTF-16 units of the longest text that the log surely keeps whole.
_UNITS_KEPT = 31


def _texts(restrictions: Iterable[Restriction]) -> Iterator[tuple[str, list[Key | None]]]:
    """The columns that hold texts, with their keys or the ends of their ranges."""
    for restriction in restrictions:
        for index, column in enumerate(restriction.columns):
            if column.type_name == "string":
                yield column.name, list(keys_or_range_ends(restriction.keys, index))


def _guards(name: str, keys: Sequence[Key | None]) -> Iterator[str]:
    # A UUID of Iceberg's is a string to Spark, and DESCRIBE says no more. Iceberg reads a text as a UUID if it
    # can, and then orders UUIDs otherwise than the bounds of its files: it skips files that hold a key (Iceberg
    # 1.12). If one text in a condition is no UUID, Iceberg leaves the whole condition to Spark.
    if any(map(_may_be_uuid, keys)):
        yield f"{name} IN ('')"
    # Spark hands no reader an OR with a function.
    if any(map(_is_ordered_otherwise_by_orc, keys)):
        yield f"length({name}) < 0"


def _may_be_uuid(key: Key | None) -> bool:
    """Java reads five hexadecimal numbers of any length, in any digits, with dashes between, as a UUID."""
    return isinstance(key, str) and key.count("-") >= _UUID_DASHES


def _is_ordered_otherwise_by_orc(key: Key | None) -> bool:
    """ORC's writer takes the least text by its UTF-8 bytes, and its reader compares by UTF-16.

    The two orders differ where one text has a character of four bytes, such as a smiley, and the other text has in
    its place a character from U+E000 on, such as a full-width letter. A key without either compares rightly.
    """
    return isinstance(key, str) and not key.isascii() and max(key) > _LAST_ORDERED_ALIKE


_UUID_DASHES = 4
_LAST_ORDERED_ALIKE = "\ud7ff"


def without_ranges(restrictions: Iterable[Restriction]) -> frozenset[str]:
    """Decimal columns that get no range: with one, the reader of the table or of the small side may lose rows.

    Parquet's filter counts the end of a range in as many bits as a file has, and a file may be of a narrower
    decimal than the table: in one of decimal(5,2), `k <= 21474837.00` is compared with a negative number (Spark
    4.3). A single value that wraps around is in no such file.
    """
    return frozenset(
        column.name
        for restriction in restrictions
        for index, column in enumerate(restriction.columns)
        if column.type_name.startswith("decimal") and _may_wrap(restriction.keys, index, column.type_name)
    )


def _may_wrap(keys: Keys, index: int, type_name: str) -> bool:
    ends = [key for key in keys_or_range_ends(keys, index) if key is not None]
    return any(not -_WRAPS_AT <= position < _WRAPS_AT for position in line(type_name).positions(ends))


_WRAPS_AT = 1 << 31


def keys_or_range_ends(keys: Keys, index: int) -> Iterable[Key | None]:
    """The keys of a column, or the ends of their ranges; none for a list of partitions, which is never sent."""
    if isinstance(keys, PartitionMatches):
        return ()
    return chain.from_iterable(keys.ranges) if isinstance(keys, KeyRanges) else map(itemgetter(index), keys.rows)


def metastore_can_compare_all(restrictions: Iterable[Restriction]) -> bool:
    """True if a metastore's filter can compare a column with all keys, or with the ends of their ranges."""
    return all(
        _can_compare_all(restriction.keys, index, column.type_name)
        for restriction in restrictions
        for index, column in enumerate(restriction.columns)
        if column.type_name in {"date", "string"}
    )


def _can_compare_all(keys: Keys, index: int, type_name: str) -> bool:
    if isinstance(keys, KeyRanges) and not all(can_compare_range(type_name, *ends) for ends in keys.ranges):
        return False
    return all(can_compare(type_name, key) for key in keys_or_range_ends(keys, index) if key is not None)


def intersected(restrictions: Iterable[Restriction]) -> tuple[Cover, list[Restriction]]:
    """The intersection of the restrictions, and the restrictions with too many boxes to be in it."""
    held, left_out = Cover.all(), []
    for restriction in restrictions:
        cover = restriction.cover
        if held.is_all:
            held = cover
        elif len(held.boxes) * len(cover.boxes) <= _BOXES_INTERSECTED_MAX:
            held = held.intersection(cover)
        else:
            left_out.append(restriction)
    return held, left_out


def first_written(
    restrictions: Sequence[Restriction],
    candidates: Callable[[Cover], Iterable[Cover]],
    written: Callable[[Cover], str],
    chars_max: int,
) -> Predicate | None:
    """The condition of the first cover that holds every key and is short enough, or that an assumption changed.

    None if each would exclude no row, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    changed = changed_assumptions(restrictions)
    asked, left_out = intersected(restrictions)
    if asked.is_none:
        return no_rows(changed)
    changed += reader_guards(restrictions)
    for wide in candidates(asked):
        if wide.is_all or not wide.encloses(asked):
            continue
        sql = f"({' OR '.join([written(wide), *changed])})"
        if len(sql) <= chars_max:
            listed = all(isinstance(restriction.keys, KeySet) for restriction in restrictions)
            return Predicate(sql, exact=listed and not left_out and wide == asked, cover=wide)
    return None


def columns_of(cover: Cover) -> list[str]:
    """The columns that a cover restricts, each once."""
    return list(dict.fromkeys(column for box in cover.boxes for column, _ in box.domains))
