"""Results of key queries, of whatever kind."""

from __future__ import annotations

from typing import TypeAlias

from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.partition_matches import PartitionMatches

# Keys, ranges around them, or the partitions that can match.
Keys: TypeAlias = KeySet | KeyRanges | PartitionMatches


def are_among(keys: Keys, others: Keys) -> bool:
    """True if a predicate for the others holds for every row that matches one of the keys.

    Answers of one question are compared: where they are no lists of keys, only equal ones are.

    >>> are_among(KeySet(("int",), ((1,),)), KeySet(("int",), ((1,), (2,))))
    True
    >>> are_among(KeySet(("int",), ((1,), (3,))), KeySet(("int",), ((1,), (2,))))
    False
    """
    if not (isinstance(keys, KeySet) and isinstance(others, KeySet)):
        return keys == others
    is_alike = (keys.type_names, keys.assumptions) == (others.type_names, others.assumptions)
    return is_alike and frozenset(others.rows).issuperset(keys.rows)
