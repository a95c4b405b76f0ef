"""Each soundness rule with a switch that turns it off: a run of the sieve that does not notice is no proof."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlglot import exp

from rewriter import KeySet, functions, lineage, queries, repeatable
from rewriter.conditions import conjuncts
from rewriter.jointree import Leaf
from rewriter.rules import CONDITION_HOLDS, NEVER_PADS, JoinKind, Side

_BOTH = frozenset(Side)


@dataclass(frozen=True)
class Mutation:
    """A rule of soundness.md by name, and what turns it off for the length of a test."""

    rule: str
    apply: Callable[[pytest.MonkeyPatch], None]

    def __str__(self) -> str:
        return self.rule


def _holds_on_both_sides(kind: JoinKind) -> Mutation:
    return Mutation(
        f"a {kind.name} join keeps rows without a partner",
        lambda patch: patch.setitem(CONDITION_HOLDS, kind, _BOTH),
    )


def _never_pads(kind: JoinKind) -> Mutation:
    return Mutation(
        f"a condition above a {kind.name} join may see padded rows",
        lambda patch: patch.setitem(NEVER_PADS, kind, _BOTH),
    )


def _always(module: Any, name: str, answer: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(module, name, lambda *_, **__: answer)


def _accept_random_functions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repeatable, "FILTER_FUNCTIONS", functions.FILTER_FUNCTIONS | {"rand"})
    for module in (repeatable, queries):
        patch.setattr(module, "QUERY_FUNCTIONS", functions.QUERY_FUNCTIONS | {"rand"})


def _take_terms_of_or_for_conjuncts(patch: pytest.MonkeyPatch) -> None:
    def unsound(condition: exp.Expr | None) -> Any:
        for term in conjuncts(condition):
            yield from (term.this, term.expression) if isinstance(term, exp.Or) else (term,)

    patch.setattr("rewriter.matches.conjuncts", unsound)


def _take_terms_of_not_for_conjuncts(patch: pytest.MonkeyPatch) -> None:
    def unsound(condition: exp.Expr | None) -> Any:
        for term in conjuncts(condition):
            yield term.this.unnest() if isinstance(term, exp.Not) else term

    patch.setattr("rewriter.matches.conjuncts", unsound)


def _lose_a_key(patch: pytest.MonkeyPatch) -> None:
    sound = KeySet.of
    patch.setattr(
        KeySet, "of", lambda *args, **kwargs: replace(found := sound(*args, **kwargs), rows=found.rows[1:])
    )


MUTATIONS = (
    *map(_holds_on_both_sides, (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.ANTI)),
    *map(_never_pads, (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)),
    Mutation("an expression over padded rows is no key", _always(Leaf, "is_padded_below", answer=False)),
    Mutation("an equality under OR reduces nothing", _take_terms_of_or_for_conjuncts),
    Mutation("an equality or a subquery under NOT reduces nothing", _take_terms_of_not_for_conjuncts),
    Mutation("a key is not followed past LIMIT", lambda patch: patch.setattr(lineage, "_CHOOSING_CLAUSES", ())),
    Mutation("a key must be a window partition key", _always(lineage, "_is_partitioned_by", answer=True)),
    Mutation("a random filter stays out of key queries", _accept_random_functions),
    Mutation("every key is in the cover", _lose_a_key),
)
