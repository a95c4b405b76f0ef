"""Partitions and filters at random, and what a filter answers by the rules of SQL alone."""

import re
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from rewriter.domains.literals import Key
from rewriter.partitions.filter_tree import And, Compare, In, IsNull, Like, Operator, Or, PartitionFilter

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"

# Few values, so that partitions and filters meet; with the ends of what a type holds.
_DAYS = ("0001-01-01", "2025-12-31", "2026-01-01", "2026-11-20", "9999-12-31")
_TEXTS = ("a", "a\0", "a\0b", "ab", "a%", "b", "B", "é", "\uffee", "😀", "a/b=c")
VALUES: dict[str, st.SearchStrategy[Key]] = {
    "tinyint": st.integers(-128, 127) | st.integers(-2, 3),
    "int": st.sampled_from([-(1 << 31), -1, 0, 1, 2, 3, (1 << 31) - 1]),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 3),
    "boolean": st.booleans(),
    "date": st.sampled_from(_DAYS) | st.dates().map(str),
    "decimal(5,2)": st.decimals(-999, 999, places=2).map(lambda value: f"{value:f}"),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    "string": st.sampled_from(_TEXTS)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), min_size=1),
}


def order(type_name: str, value: Key | None) -> Any:
    """The sort key of a value, nulls first: what SQL says, by other means than the index."""
    if value is None:
        return (0,)
    if type_name.startswith("decimal"):
        return (1, Decimal(str(value)))
    return (1, value.encode() if type_name == "string" and isinstance(value, str) else value)


def name_of(columns: tuple[str, ...], values: tuple[Key | None, ...]) -> str:
    """The partition's name, as Hive would write it."""
    return "/".join(f"{column}={_escaped(value)}" for column, value in zip(columns, values, strict=True))


def _escaped(value: Key | None) -> str:
    if value is None:
        return NULL_NAME
    return re.sub(r"[\x00-\x1f\"#%'*/:=?\\{\[\]^\x7f]", lambda found: f"%{ord(found[0]):02X}", str(value))


def filters(columns: tuple[str, ...], type_names: tuple[str, ...]) -> st.SearchStrategy[PartitionFilter]:
    """Trees of conditions on the columns."""
    leaves = [_leaves(column, type_name) for column, type_name in zip(columns, type_names, strict=True)]
    return st.recursive(
        st.one_of(leaves),
        lambda inner: (
            st.builds(And, st.lists(inner, max_size=4).map(tuple))
            | st.builds(Or, st.lists(inner, max_size=4).map(tuple))
        ),
        max_leaves=12,
    )


def _leaves(column: str, type_name: str) -> st.SearchStrategy[PartitionFilter]:
    value = VALUES[type_name]
    found: st.SearchStrategy[PartitionFilter] = st.one_of(
        st.builds(Compare, st.just(column), st.sampled_from(Operator), value | st.none()),
        st.builds(In, st.just(column), st.lists(value | st.none(), max_size=4).map(tuple)),
        st.builds(IsNull, st.just(column), st.booleans()),
    )
    if type_name != "string":
        return found
    return found | st.builds(Like, st.just(column), PATTERNS, st.just("\\"), st.booleans())


PATTERNS = st.lists(st.sampled_from(["a", "b", "\0", "é", "%", "_", "\\%", "\\_", "\\\\"]), max_size=6).map(
    "".join
)


def is_true(node: PartitionFilter, row: dict[str, tuple[str, Key | None]]) -> bool | None:
    """What SQL answers: true, false or null."""
    if isinstance(node, And | Or):
        answers = [is_true(term, row) for term in node.terms]
        decisive = isinstance(node, Or)
        return decisive if decisive in answers else None if None in answers else not decisive
    type_name, value = row[node.column]
    if isinstance(node, IsNull):
        return (value is None) is not node.negated
    if isinstance(node, Like):
        return None if value is None else like(str(value), node.pattern) is not node.negated
    if isinstance(node, Compare):
        return _compare(type_name, node.operator, value, node.value)
    answers = [_compare(type_name, Operator.EQUAL, value, other) for other in node.values]
    return True if True in answers else None if None in answers else False


def _compare(type_name: str, operator: Operator, value: Key | None, other: Key | None) -> bool | None:
    if value is None or other is None:
        return None
    left, right = order(type_name, value), order(type_name, other)
    answers: dict[Operator, bool] = {
        Operator.EQUAL: left == right,
        Operator.NOT_EQUAL: left != right,
        Operator.LESS: left < right,
        Operator.AT_MOST: left <= right,
        Operator.GREATER: left > right,
        Operator.AT_LEAST: left >= right,
    }
    return answers[operator]


def like(text: str, pattern: str) -> bool:
    """LIKE by one regular expression, as Spark does it."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return bool(
        re.fullmatch("".join({"%": ".*", "_": "."}.get(p, re.escape(p[-1])) for p in parts), text, re.DOTALL)
    )
