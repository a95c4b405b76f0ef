"""Condition that leaves out the partitions of a list that cannot match, for Spark's planner alone.

Between two values that are known to miss, another partition may come at any time: a text between two days is no
day, but still a string. So the condition names the misses, and no range around the matches, and a metastore could
seldom use it. Spark's planner prunes the partitions by it before it lists their files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date

from rewriter.domains.cover_sql import cover_sql, domain_sql
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, UnreadableKeyError, literals
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.predicates.metastore_filter import hidden_from_metastore
from rewriter.predicates.predicate import Restriction, changed_assumptions
from rewriter.vocabulary.identifiers import quoted

# A condition of so many characters is short enough, even if another form is shorter.
_SHORT_CHARS = 500

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def partition_list_predicate(restriction: Restriction, matches: PartitionMatches, chars_max: int) -> str | None:
    """The condition in its shortest form; None if it is too long, has no certain literal, or drops nothing."""
    if not matches.misses:
        return None
    texts: list[str] = []
    for form in (_as_days, _as_cover, _as_list):
        with suppress(UnreadableKeyError):
            texts += form(restriction, matches)
        if any(len(text) <= _SHORT_CHARS for text in texts):
            break  # the other forms take a tenth of a second to write
    if not texts:
        return None
    changed = changed_assumptions([restriction])
    text = f"({' OR '.join([hidden_from_metastore(min(texts, key=len)), *changed])})"
    return text if len(text) <= chars_max else None


def _as_cover(restriction: Restriction, matches: PartitionMatches) -> Iterator[str]:
    """The complement of the misses as ranges: short where misses are neighbours, as days and numbers can be."""
    cover = matches.cover(restriction.names)
    yield "FALSE" if cover.is_none else cover_sql(cover)


def _as_list(restriction: Restriction, matches: PartitionMatches) -> Iterator[str]:
    """NOT IN. Tuples with a null are not named: their partitions stay in."""
    names, misses = [quoted(name) for name in restriction.names], sorted(_without_null(matches), key=repr)
    if not misses:
        return
    columns = [literals(type_name, column) for type_name, column in _by_column(matches.type_names, misses)]
    if len(names) > 1:
        tuples = (f"({', '.join(row)})" for row in zip(*columns, strict=True))
        yield f"(({', '.join(names)}) IN ({', '.join(tuples)})) IS NOT TRUE"
        return
    yield _null_aside(names[0], f"{names[0]} NOT IN ({', '.join(columns[0])})", matches)


def _as_days(restriction: Restriction, matches: PartitionMatches) -> Iterator[str]:
    """The days of a column of strings as ranges of dates.

    Only a string that is a date exactly as Spark writes it can be left out.
    """
    misses = [row[0] for row in matches.misses]
    days = [value for value in misses if isinstance(value, str) and _is_day(value)]
    if matches.type_names != ("string",) or not days:
        return
    name = quoted(restriction.names[0])
    day = f"try_cast({name} AS DATE)"
    kept = domain_sql(day, Domain("date", Domain.of("date", days).complement().cuts))
    text = f"coalesce(CAST({day} AS STRING) <> {name}, TRUE) OR {kept}"
    known = {*days}
    if others := sorted(value for value in misses if isinstance(value, str) and value not in known):
        text = f"({text}) AND {name} NOT IN ({', '.join(literals('string', others))})"
    yield _null_aside(name, f"({text})", matches)


def _is_day(text: str) -> bool:
    if not _DAY.fullmatch(text):
        return False
    try:
        _ = date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _null_aside(name: str, condition: str, matches: PartitionMatches) -> str:
    """The condition for values, extended to keep null or to leave it out."""
    if (None,) in matches.misses:
        return f"({condition} AND {name} IS NOT NULL)"
    return f"({condition} OR {name} IS NULL)"


def _without_null(matches: PartitionMatches) -> list[tuple[Key | None, ...]]:
    return [row for row in matches.misses if None not in row]


def _by_column(
    type_names: Sequence[str], rows: Sequence[tuple[Key | None, ...]]
) -> Iterator[tuple[str, tuple[Key | None, ...]]]:
    return zip(type_names, zip(*rows, strict=True), strict=True)
