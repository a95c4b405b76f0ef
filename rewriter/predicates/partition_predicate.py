"""Partition predicate: keys of a fact's partition columns as a condition that the metastore accepts.

The condition that the metastore is sent is widened until the metastore accepts it. The exact keys are repeated in
a form that Spark's planner prunes by and does not send, so that Spark reads the partitions of the keys alone.
Example: ``k BETWEEN 1 AND 900 AND array_contains(array(1, 7, .., 900), k)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewriter.domains.consumers import ACCEPTS_NOTHING
from rewriter.domains.cover import Cover
from rewriter.domains.cover_sql import all_of, cover_sql
from rewriter.domains.gap_costs import Costs, adds_to
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeySet
from rewriter.domains.positions import differ_in_digits_only
from rewriter.domains.widen import Consumer, widen
from rewriter.predicates.metastore_filter import hidden_from_metastore
from rewriter.predicates.predicate import (
    Predicate,
    Restriction,
    changed_assumptions,
    intersected,
    keys_or_range_ends,
    no_rows,
    reader_guards,
    without_ranges,
)

# Characters around a term and between it and the next one.
_JOINING_CHARS = len("() AND ")


@dataclass(frozen=True)
class Budget:
    """Limits of a predicate: its length, and the metastore's own limits."""

    metastore: Consumer
    chars_max: int
    # True if a metastore may be sent any of it: itself, or a condition that Spark infers from it for another
    # table.
    may_send: bool = True

    @classmethod
    def without_metastore(cls, chars_max: int) -> Budget:
        """The budget of a predicate that no metastore may be sent."""
        return cls(ACCEPTS_NOTHING, chars_max, may_send=False)


def partition_predicate(
    restrictions: Sequence[Restriction], columns: Sequence[str], budget: Budget, costs: Mapping[str, Costs]
) -> Predicate | None:
    """The condition that the columns hold keys of every restriction, or that one of their assumptions changed.

    The assumptions are the columns' types and the values of session functions. Spark checks both as it plans, and
    folds them away while they hold: a table that was dropped and created again with another type, unnoticed, is
    then read in full. `columns` are the fact's partition columns, the leading one first. None if the condition
    would exclude no row, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    changed = changed_assumptions(restrictions)
    asked, left_out = intersected(restrictions)
    if asked.is_none:
        return no_rows(changed)
    changed += reader_guards(restrictions)
    metastore = _metastore(restrictions, budget)
    wide = Cover.all() if metastore.accepts_nothing else widen(asked, columns, metastore, costs)
    if not wide.encloses(asked):
        return None  # a key would be lost
    terms = [] if wide.is_all else [cover_sql(wide)]
    missed = restrictions if _reads_more(wide, asked, costs) else left_out
    chars_left = budget.chars_max - sum(len(text) + _JOINING_CHARS for text in (*terms, *changed))
    repeated = _repeated_for_planner(missed, chars_left, instead=metastore.accepts_nothing)
    if len(repeated) < len(missed) and budget.metastore.range_partitions:
        # Gaps that were closed to save the metastore a range would be read.
        sparing = replace(budget, metastore=replace(budget.metastore, range_partitions=0))
        return partition_predicate(restrictions, columns, sparing, costs)
    terms += repeated
    sql = f"({' OR '.join([all_of(terms), *changed])})" if terms else ""
    if not sql or len(sql) > budget.chars_max:
        return None
    listed = all(isinstance(restriction.keys, KeySet) for restriction in restrictions)
    is_exact = listed and (len(repeated) == len(restrictions) or (wide == asked and not left_out))
    is_for_planner_alone = metastore.accepts_nothing and len(repeated) == len(restrictions) and not left_out
    return Predicate(sql, is_exact, asked if is_for_planner_alone else wide, is_sent_to_metastore=not wide.is_all)


def _reads_more(wide: Cover, intersected: Cover, costs: Mapping[str, Costs]) -> bool:
    """True if the wider cover keeps partitions that the other one does not, or if that is not known."""
    if wide == intersected:
        return False
    if len(wide.boxes) != 1 or len(intersected.boxes) != 1:
        return True
    domains = dict(wide.boxes[0].domains)
    return any(
        column not in domains
        or (known := costs.get(column)) is None
        or known.type_name != domain.type_name
        or adds_to(domains[column], domain, known)
        for column, domain in intersected.boxes[0].domains
    )


def _metastore(restrictions: Iterable[Restriction], budget: Budget) -> Consumer:
    """The metastore as a consumer: a range of strings is safe only if every database orders them as Spark does."""
    unordered = {
        column.name
        for restriction in restrictions
        for index, column in enumerate(restriction.columns)
        if column.type_name == "string" and not _is_ordered_alike(restriction.keys, index)
    }
    return replace(budget.metastore, unordered=without_ranges(restrictions) | unordered)


def _is_ordered_alike(keys: Keys, index: int) -> bool:
    """True if every metastore orders the keys of a column as Spark does.

    The metastore's database compares strings in its own collation, which may put 'B' before 'a' or ignore
    punctuation. All collations order keys alike that differ in digits only, such as dates.
    """
    return differ_in_digits_only([end for end in keys_or_range_ends(keys, index) if isinstance(end, str)])


def _repeated_for_planner(restrictions: Iterable[Restriction], chars_max: int, *, instead: bool) -> list[str]:
    """The keys repeated for Spark's planner, as far as they fit, the shortest first.

    Ranges and nulls are repeated only `instead` of a condition for the metastore.
    """
    texts = [_for_the_planner(restriction, chars_max, instead=instead) for restriction in restrictions]
    repeated = []
    for text in sorted(filter(None, texts), key=len):
        chars_max -= len(text) + _JOINING_CHARS
        if chars_max > 0:
            repeated.append(text)
    return repeated


def _for_the_planner(restriction: Restriction, chars_max: int, *, instead: bool) -> str | None:
    keys = restriction.keys
    exact = keys.exact(restriction.names, chars_max) if isinstance(keys, KeySet) else None
    if exact is not None or not instead or restriction.cover.is_all:
        return exact
    return hidden_from_metastore(cover_sql(restriction.cover))
