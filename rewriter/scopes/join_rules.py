"""Soundness rules for joins, in two tables: sides that a fact may be on, and conditions its key query may use.

N is the join whose condition holds `T.k = e(R)`; S are the keys that R can give. A row of T whose key is not in S
finds no partner at N. It may be left out if such a row cannot reach the result through N: wherever N only lets
through rows of T's side that satisfied its condition. The plan below N on T's side does not matter: leaving out a
row of T can only remove rows that hold its key, or pad a row with nulls in place of it, and null fails at N too.
"""

from __future__ import annotations

from enum import Enum, auto


class Side(Enum):
    """A side of a join."""

    LEFT = auto()
    RIGHT = auto()


class JoinKind(Enum):
    """A join's treatment of rows without a partner. CROSS and the comma are INNER without a condition."""

    INNER = auto()
    LEFT = auto()
    RIGHT = auto()
    FULL = auto()
    SEMI = auto()
    ANTI = auto()


_BOTH = frozenset(Side)
_NONE: frozenset[Side] = frozenset()

# The sides whose rows have satisfied the join's condition if they come through with their values. A fact may be on
# such a side, and a condition that reads the small side alone holds for its rows there. A fact may never be on the
# preserved side of an outer join: `T LEFT JOIN R ON T.k = R.k` keeps the rows of T without a partner. FULL and
# ANTI keep them on both sides.
CONDITION_HOLDS: dict[JoinKind, frozenset[Side]] = {
    JoinKind.INNER: _BOTH,
    JoinKind.LEFT: frozenset({Side.RIGHT}),
    JoinKind.RIGHT: frozenset({Side.LEFT}),
    JoinKind.FULL: _NONE,
    JoinKind.SEMI: frozenset({Side.LEFT}),
    JoinKind.ANTI: _NONE,
}

# The sides whose rows never come through: they only tell if a row of the other side has a partner. A fact may be
# there too. Each row of the other side keeps its partners if the fact loses only rows of keys that side lacks.
PROBED: dict[JoinKind, frozenset[Side]] = {
    **dict.fromkeys(JoinKind, _NONE),
    JoinKind.SEMI: frozenset({Side.RIGHT}),
    JoinKind.ANTI: frozenset({Side.RIGHT}),
}

# The sides whose rows a join passes on or drops but never pads: conditions above it see these rows unchanged.
#
# A condition above N may restrict the small side only while N's result has passed through such sides. The
# counterexample: `X LEFT JOIN (T JOIN R ON T.k = R.k) ON .. WHERE coalesce(R.g, 5) = 5`. With R restricted to g =
# 5, a row of X that matched only other rows comes back padded, and coalesce lets it pass.
NEVER_PADS: dict[JoinKind, frozenset[Side]] = {
    JoinKind.INNER: _BOTH,
    JoinKind.LEFT: frozenset({Side.LEFT}),
    JoinKind.RIGHT: frozenset({Side.RIGHT}),
    JoinKind.FULL: _NONE,
    JoinKind.SEMI: frozenset({Side.LEFT}),
    JoinKind.ANTI: frozenset({Side.LEFT}),
}
