"""Key set -> Spark SQL text, within the limits of those who read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from rewriter.catalog import quoted
from rewriter.keys import KeySet

_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True)
class Predicate:
    """A condition on columns of a fact scan that every key satisfies."""

    sql: str
    # Whether nothing but the keys satisfies it.
    exact: bool


def render(columns: Sequence[str], keys: KeySet, *, metastore_in_max: int) -> Predicate:
    """The condition that the columns hold one of the keys, or that what the keys rest on no longer holds.

    That is the columns' types and the assumptions about the session. Spark checks both as it plans, and folds them
    away while they hold: a table that was dropped and created again with another type, unnoticed, is then read
    in full. Raises UnreadableKeyError.

    >>> render(["ds"], KeySet.of(("string",), [("b",), ("a",)]), metastore_in_max=100).sql
    "(`ds` IN ('a', 'b') OR typeof(`ds`) <> 'string')"
    """
    doubts = [f"{function} <> {literal}" for function, literal in keys.assumptions]
    if not keys.rows:
        return Predicate(f"({' OR '.join(['FALSE', *doubts])})" if doubts else "FALSE", exact=True)
    names = [quoted(column) for column in columns]
    single = [keys.column(index) for index in range(len(names))]
    holds = [_holds(name, values, metastore_in_max) for name, values in zip(names, single, strict=True)]
    exact = len(keys.rows) == prod(len(values.rows) for values in single)
    if not exact and not keys.has_null:
        holds.append(_paired(names, keys))
        exact = True
    condition = " AND ".join(holds)
    if len(holds) > 1:
        condition = f"({condition})"
    types = [f"typeof({name}) <> '{type_name}'" for name, type_name in zip(names, keys.type_names, strict=True)]
    return Predicate(f"({' OR '.join([condition, *types, *doubts])})", exact=exact)


def _holds(name: str, keys: KeySet, metastore_in_max: int) -> str:
    """The condition on one column."""
    literals = [text for (text,) in keys.literals if text != "NULL"]
    if not literals:
        return f"{name} IS NULL"
    if len(literals) <= metastore_in_max:
        holds = f"{name} IN ({', '.join(literals)})"
    else:
        holds = _beyond_the_metastore(name, keys, literals)
    return f"({holds} OR {name} IS NULL)" if keys.has_null else holds


def _paired(names: Sequence[str], keys: KeySet) -> str:
    """Keys of several columns as tuples, which Spark's planner prunes by and the metastore never sees."""
    tuples = (f"({', '.join(row)})" for row in keys.literals)
    return f"({', '.join(names)}) IN ({', '.join(tuples)})"


def _beyond_the_metastore(name: str, keys: KeySet, literals: Sequence[str]) -> str:
    """Exact in Spark's planner, while the metastore sees one range at most.

    A long IN makes a Derby-backed metastore fail; `array_contains` is never sent there.
    """
    exact = f"array_contains(array({', '.join(literals)}), {name})"
    if not _range_is_safe(keys):
        return exact
    return f"({name} BETWEEN {literals[0]} AND {literals[-1]} AND {exact})"


def _range_is_safe(keys: KeySet) -> bool:
    """Whether every metastore orders the keys as Spark does.

    Strings are compared by the metastore's database in its own collation, which may put 'B' before 'a' or
    skip over punctuation. Keys that differ in digits only, such as dates, are ordered alike by all.
    """
    if keys.type_names != ("string",):
        return True
    return len({_DIGIT.sub("0", str(key)) for (key,) in keys.rows if key is not None}) <= 1
