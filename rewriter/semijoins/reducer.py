"""Reducer of a fact scan: the query for keys or partitions, and the reducers that take its place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rewriter.scopes.join_tree import TableReference
from rewriter.semijoins.key_query import KeySetQuery
from rewriter.semijoins.range_query import KeyRangesQuery
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal

# A query for the keys of a small side, or for the partitions that match (`PartitionsQuery`, a KeySetQuery).
KeyQuery: TypeAlias = KeySetQuery | KeyRangesQuery


@dataclass(frozen=True)
class Reducer:
    """A reducer of a fact scan: equalities with a filtered small side, and the query for their keys."""

    columns: tuple[str, ...]
    join: str
    key_query: KeyQuery
    # Reducers for too many keys: for several columns each by itself, and for one column ranges around the keys.
    alternatives: tuple[Reducer, ...] = ()
    # The reducer for keys that turn out to be of another type than the fact's column: by the list of partitions,
    # or the reason why there is none.
    if_types_differ: Reducer | Refusal | None = None
    # Views whose texts it follows, and the tables behind them that it takes to be as they were described: nothing
    # in the statement would notice another text, or other types behind it.
    follows: frozenset[TableName] = field(default=frozenset(), compare=False)
    # The rules that it takes. Reducers with the same query are equal, by whichever rules they were found.
    rules: frozenset[Rule] = field(default=frozenset(), compare=False)

    def without(self, off: frozenset[Rule]) -> tuple[Reducer, ...]:
        """The reducers that are left if these rules are off: itself, or its alternatives, or none."""
        alternatives = tuple(left for reducer in self.alternatives for left in reducer.without(off))
        by_list = self.if_types_differ
        if isinstance(by_list, Reducer):
            by_list = next(iter(by_list.without(off)), None)
        if self.rules & off:
            return alternatives
        return (replace(self, alternatives=alternatives, if_types_differ=by_list),)


@dataclass(frozen=True)
class Finding:
    """A fact's scan with a reducer, or with the reason why an equality is none."""

    reference: TableReference
    result: Reducer | Refusal
