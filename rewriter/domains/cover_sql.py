"""Covers and domains as conditions in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain, Interval
from rewriter.domains.literals import Key, literal, literals
from rewriter.domains.positions import Position, line
from rewriter.vocabulary.identifiers import quoted


def cover_sql(cover: Cover, list_max: int | None = None, whole: AbstractSet[str] = frozenset()) -> str:
    """A cover as a condition: an OR of boxes, each an AND of domains. The cover of all rows has none.

    With `list_max` no IN list has more values than that: longer lists are split, and a range of no more values is
    listed too. Lists of the columns named in `whole` stay whole.

    >>> from rewriter.vocabulary.identifiers import Column
    >>> cover_sql(Cover.of_rows([Column("k", "int")], [(1,), (7,), (8,)]))
    '(`k` IN (1) OR `k` BETWEEN 7 AND 8)'
    """
    return _any_of([_box_sql(box, list_max, whole) for box in cover.boxes])


def domain_sql(expression: str, domain: Domain) -> str:
    """The condition that an expression has a value of a domain."""
    return _domain_sql(expression, domain, None)


def _box_sql(box: Box, list_max: int | None, whole: AbstractSet[str]) -> str:
    terms = ((column, domain, None if column in whole else list_max) for column, domain in box.domains)
    return all_of([_domain_sql(quoted(column), domain, most) for column, domain, most in terms])


def _domain_sql(name: str, domain: Domain, list_max: int | None) -> str:
    values, intervals = _values_and_ranges(domain, list_max or 1)
    texts, most = list(literals(domain.type_name, values)), list_max or len(values)
    terms = [f"{name} IN ({', '.join(texts[at : at + most])})" for at in range(0, len(texts), most or 1)]
    terms += [_range_sql(name, domain.type_name, interval) for interval in intervals]
    return _any_of([*terms, *([f"{name} IS NULL"] if domain.nullable else [])])


def _values_and_ranges(domain: Domain, values_max: int) -> tuple[Sequence[Key], Sequence[Interval]]:
    """The values of the domain's ranges with at most `values_max` values, and its other ranges."""
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
    """The terms as an AND; a single term is returned unchanged."""
    return terms[0] if len(terms) == 1 else f"({' AND '.join(terms)})"


def _any_of(terms: Sequence[str]) -> str:
    """The terms as a balanced OR: parsers nest one level for each term of a flat one."""
    if len(terms) <= _FLAT_TERMS_MAX:
        return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"
    middle = len(terms) // 2
    return f"({_any_of(terms[:middle])} OR {_any_of(terms[middle:])})"


# Terms of a flat OR.
_FLAT_TERMS_MAX = 16
