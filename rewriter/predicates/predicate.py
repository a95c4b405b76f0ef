"""Keys, and the rows that they may be in, as Spark SQL: what all conditions that are inserted consist of.

Each of them says where the keys are, or that something which they rest on has changed: the type of a column, or
what a session function answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain, Interval
from rewriter.domains.keyset import KeyRanges, Keys, KeySet
from rewriter.domains.literals import Key, literal, literals
from rewriter.domains.positions import Position, line
from rewriter.predicates.metastore_filter import can_compare, can_compare_range
from rewriter.vocabulary.identifiers import Column, quoted

# Boxes that are met with one another: all keys of three paired reducers would be billions.
_BOXES_MET_MAX = 10_000


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
        """The rows that it lets through."""
        return self.keys.cover(self.names)

    def of_columns(self, names: AbstractSet[str]) -> Restriction | None:
        """What it says of some of its columns, in lower case, by themselves; None if it reads none of them."""
        places = [i for i, name in enumerate(self.names) if name.lower() in names]
        if not places:
            return None
        if len(places) == len(self.columns) or not isinstance(self.keys, KeySet):
            return self
        rows = {tuple(row[i] for i in places) for row in self.keys.rows}
        types = tuple(self.keys.type_names[i] for i in places)
        # The nulls that match nothing have been dropped long since.
        keys = KeySet.of(types, rows, null_safe=(True,) * len(places))
        keys = replace(keys, assumptions=self.keys.assumptions)
        return Restriction(tuple(self.columns[i] for i in places), keys)


@dataclass(frozen=True)
class Predicate:
    """A condition on columns of a fact scan that every key satisfies."""

    sql: str
    # Whether nothing but the keys satisfies it.
    exact: bool
    # The keys that the metastore, Iceberg, or else Spark's planner is asked for.
    cover: Cover
    # Whether it holds what Spark sends to the metastore.
    is_sent_to_metastore: bool = False


def no_rows(changed: Sequence[str]) -> Predicate:
    """The condition that no row satisfies while nothing has changed."""
    sql = f"({' OR '.join(['FALSE', *changed])})" if changed else "FALSE"
    return Predicate(sql, exact=True, cover=Cover.none())


def type_changed(column: Column) -> str:
    """What holds only if the column has another type by now."""
    return f"typeof({quoted(column.name)}) <> '{column.type_name}'"


def changed_assumptions(restrictions: Sequence[Restriction]) -> list[str]:
    """What holds only if something that the keys rest on does not."""
    types = {column.name: column.type_name for restriction in restrictions for column in restriction.columns}
    # Without a single key nothing matches, whatever the type. Two sets that have no key in common are another
    # matter: to a column of another type 'a' and 'A' may be equal.
    if any(restriction.keys.is_none for restriction in restrictions):
        types = {}
    assumed = (assumption for restriction in restrictions for assumption in restriction.keys.assumptions)
    return [
        *(type_changed(Column(name, type_name)) for name, type_name in types.items()),
        *(f"{function} <> {value}" for function, value in dict.fromkeys(assumed)),
    ]


def uuid_guards(restrictions: Iterable[Restriction]) -> list[str]:
    """What has to stand beside keys that could be UUIDs: a comparison with a text that is none.

    To Spark a UUID of Iceberg's is a string, and DESCRIBE says no more. Iceberg takes a text for a UUID where it
    can, and then orders UUIDs otherwise than the bounds of its files are: it skips files that hold a key (Iceberg
    1.12). A condition in which one text is no UUID it leaves to Spark as a whole. Any table's needs that: from an
    equality Spark infers that what is said of a fact holds for the small side too.
    """
    names = {
        column.name: None
        for restriction in restrictions
        for index, column in enumerate(restriction.columns)
        if column.type_name == "string" and any(map(_may_be_uuid, keys_or_range_ends(restriction.keys, index)))
    }
    return [f"{quoted(name)} IN ('')" for name in names]


def _may_be_uuid(key: Key | None) -> bool:
    """Java reads five hexadecimal numbers of any length, in any digits, with dashes between, as a UUID."""
    return isinstance(key, str) and key.count("-") >= _UUID_DASHES


_UUID_DASHES = 4


def keys_or_range_ends(keys: Keys, index: int) -> Iterable[Key | None]:
    """The keys of a column, or the ends of the ranges that they are in."""
    return chain.from_iterable(keys.ranges) if isinstance(keys, KeyRanges) else map(itemgetter(index), keys.rows)


def metastore_can_compare_all(restrictions: Iterable[Restriction]) -> bool:
    """Whether a metastore's filter can hold all keys, or the ranges that they are in."""
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


def met(restrictions: Iterable[Restriction]) -> tuple[Cover, list[Restriction]]:
    """The rows of all restrictions but those that have too many boxes for it."""
    held, left_out = Cover.all(), []
    for restriction in restrictions:
        cover = restriction.cover
        if held.is_all:
            held = cover
        elif len(held.boxes) * len(cover.boxes) <= _BOXES_MET_MAX:
            held = held.intersection(cover)
        else:
            left_out.append(restriction)
    return held, left_out


def cover_sql(cover: Cover, list_max: int | None = None) -> str:
    """A cover as a condition: an OR of boxes, each an AND of domains. The cover of all rows has none.

    With `list_max` no IN lists more values than that, but as many lists are made as it takes, and a range of no
    more values is listed too.

    >>> cover_sql(Cover.of_rows([Column("k", "int")], [(1,), (7,), (8,)]))
    '(`k` IN (1) OR `k` BETWEEN 7 AND 8)'
    """
    return _any_of([_box_sql(box, list_max) for box in cover.boxes])


def _box_sql(box: Box, list_max: int | None) -> str:
    return all_of([_domain_sql(quoted(column), domain, list_max) for column, domain in box.domains])


def _domain_sql(name: str, domain: Domain, list_max: int | None) -> str:
    values, intervals = _values_and_ranges(domain, list_max or 1)
    texts, most = list(literals(domain.type_name, values)), list_max or len(values)
    terms = [f"{name} IN ({', '.join(texts[at : at + most])})" for at in range(0, len(texts), most or 1)]
    terms += [_range_sql(name, domain.type_name, interval) for interval in intervals]
    return _any_of([*terms, *([f"{name} IS NULL"] if domain.nullable else [])])


def _values_and_ranges(domain: Domain, values_max: int) -> tuple[Sequence[Key], Sequence[Interval]]:
    """The values of its ranges that hold so few of them, and its other ranges."""
    width = line(domain.type_name).width
    parts: tuple[list[Position], list[Position]] = ([], [])
    for low, high in domain.ranges:
        parts[width(low, high) > values_max].extend((low, high))
    few, many = (Domain(domain.type_name, tuple(cuts)) for cuts in parts)
    return few.values, many.intervals


def _range_sql(name: str, type_name: str, interval: Interval) -> str:
    low, high = interval.low, interval.high
    if low is None and high is None:
        return f"{name} IS NOT NULL"
    if low is not None and high is not None and low.inclusive and high.inclusive:
        return f"{name} BETWEEN {literal(type_name, low.value)} AND {literal(type_name, high.value)}"
    terms = []
    if low is not None:
        terms.append(f"{name} {'>=' if low.inclusive else '>'} {literal(type_name, low.value)}")
    if high is not None:
        terms.append(f"{name} {'<=' if high.inclusive else '<'} {literal(type_name, high.value)}")
    return all_of(terms)


def all_of(terms: Sequence[str]) -> str:
    """The terms as an AND; one by itself stays as it is."""
    return terms[0] if len(terms) == 1 else f"({' AND '.join(terms)})"


def _any_of(terms: Sequence[str]) -> str:
    """The terms as a balanced OR: parsers nest one level for each that simply follows on another."""
    if len(terms) <= _FLAT_TERMS_MAX:
        return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"
    middle = len(terms) // 2
    return f"({_any_of(terms[:middle])} OR {_any_of(terms[middle:])})"


# Terms of an OR that are written one after the other.
_FLAT_TERMS_MAX = 16
