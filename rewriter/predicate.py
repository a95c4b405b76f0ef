"""Key set -> Spark SQL text, within the limits of those who read it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rewriter.catalog import quoted
from rewriter.keys import KeySet

_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True)
class Predicate:
    """A condition on one column of a fact scan that every key satisfies."""

    sql: str
    # Whether nothing but the keys satisfies it.
    exact: bool


def render(column: str, keys: KeySet, *, metastore_in_max: int) -> Predicate:
    """The condition that the column holds one of the keys, or no longer has the keys' type.

    The type is checked by Spark as it plans and folded away while it holds: a table that was dropped and
    created again with another type, unnoticed, is then read in full. Raises UnreadableKeyError.

    >>> render("ds", KeySet.of("string", ["b", "a"]), metastore_in_max=100).sql
    "(`ds` IN ('a', 'b') OR typeof(`ds`) <> 'string')"
    """
    if not keys.values:
        return Predicate("FALSE", exact=True)
    column = quoted(column)
    literals = keys.literals
    if len(literals) <= metastore_in_max:
        holds = f"{column} IN ({', '.join(literals)})"
    else:
        holds = _beyond_the_metastore(column, keys, literals)
    return Predicate(f"({holds} OR typeof({column}) <> '{keys.type_name}')", exact=True)


def _beyond_the_metastore(column: str, keys: KeySet, literals: tuple[str, ...]) -> str:
    """Exact in Spark's planner, while the metastore sees one range at most.

    A long IN makes a Derby-backed metastore fail; `array_contains` is never sent there.
    """
    exact = f"array_contains(array({', '.join(literals)}), {column})"
    if not _range_is_safe(keys):
        return exact
    return f"({column} BETWEEN {literals[0]} AND {literals[-1]} AND {exact})"


def _range_is_safe(keys: KeySet) -> bool:
    """Whether every metastore orders the keys as Spark does.

    Strings are compared by the metastore's database in its own collation, which may put 'B' before 'a' or
    skip over punctuation. Keys that differ in digits only, such as dates, are ordered alike by all.
    """
    if keys.type_name != "string":
        return True
    return len({_DIGIT.sub("0", str(key)) for key in keys.values}) == 1
