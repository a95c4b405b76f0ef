"""The condition of the clause that fails a narrowed MERGE for a key that its source was not asked for.

The reasons stand in `rewriter.semijoins.merge_check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rewriter.domains.cover import Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.literals import integers_of, literal
from rewriter.predicates.named_columns import of_expressions
from rewriter.semijoins.key_query import KeyColumn
from rewriter.semijoins.merge_check import MergeCheck
from rewriter.semijoins.reducer import Reducer
from rewriter.vocabulary.identifiers import quoted

_AUTHOR, _CHANGED = "starpruner: ", "the keys have changed since they were read"
# The message of the error for a further key, without the check's word.
KEYS_CHANGED: Final = _AUTHOR + _CHANGED

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def message(word: str) -> str:
    """The message of a check with a word. An error that only quotes the statement's text does not contain it."""
    return _AUTHOR + _changed(word)


def check_of_row(reducers: Sequence[Reducer], cover: Cover, merge: MergeCheck, word: str = "") -> str:
    """A condition on a row of a MERGE's source that never holds, and raises `message(word)` for further keys.

    It is one expression in parentheses. Raises UnreadableKeyError.
    """
    pairs = [pair for one in reducers for pair in zip(one.columns, one.key_query.columns, strict=True)]
    keys = {quoted(name): f"({merge.keys[name.lower()]})" for name, _ in pairs}
    known = of_expressions(_known(cover), keys.__getitem__)
    is_new = _is_new({keys[quoted(name)]: column for name, column in pairs}, known)
    counts = " AND ".join(f"({text})" for text in (is_new, *merge.filters))
    return f"(CASE WHEN {counts} THEN {_raised(word)} ELSE FALSE END)"


def _raised(word: str) -> str:
    return f"raise_error(concat('{_AUTHOR}', '{_changed(word)}'))"


def _changed(word: str) -> str:
    return f"{_CHANGED} ({word})" if word else _CHANGED


def _known(cover: Cover) -> str:
    return "TRUE" if cover.is_all else "FALSE" if cover.is_none else cover_sql(cover)


def _is_new(keys: Mapping[str, KeyColumn], known: str) -> str:
    """A condition for keys, by their expressions, that a row of the fact can have and that are not known."""
    counts = [_can_match(key, column.type_name) for key, column in keys.items()]
    # With other types, `=` may match keys that the list does not hold.
    changed = [f"typeof({key}) NOT IN ({_types(column.type_name)})" for key, column in keys.items()]
    return " OR ".join([*changed, f"({' AND '.join([*counts, f'({known}) IS NOT TRUE'])})"])


def _can_match(name: str, type_name: str) -> str:
    """A condition that holds for keys that `=` can find in a row of the fact, and is false for null.

    Delta evaluates the check for rows of the target without a partner too, and their keys are all null. AND skips
    the terms behind a FALSE, but not those behind a NULL.
    """
    held = integers_of(type_name)
    if held is None or type_name == "bigint":
        return f"{name} IS NOT NULL"
    ends = (literal(type_name, end) for end in (held.start, held.stop - 1))
    return f"{name} IS NOT NULL AND {name} BETWEEN {' AND '.join(ends)}"


def _types(type_name: str) -> str:
    """The types that compare exactly with a column's (`rewriter.domains.literals.compares_exactly`)."""
    return ", ".join(f"'{name}'" for name in (_INTEGERS if type_name in _INTEGERS else (type_name,)))
