"""The check by which a narrowed MERGE fails, before it commits, if its source holds a key that was not asked for.

`MERGE INTO t USING s ON t.k = s.k ..` gets `t.k IN (C)` as a conjunct of ON. Each pair with a key in C stays.
Any other key would be lost: its row of the source finds no partner, and is inserted a second time, or updates
nothing. But such a row is certain not to be matched. So a further clause, before the others for such rows, raises:

`WHEN NOT MATCHED AND (CASE WHEN s.k NOT IN (C) THEN raise_error(..) ELSE FALSE END) THEN INSERT ..`

Spark has to evaluate it for each row of the source without a partner, to know which clause takes the row. It
cannot infer the condition away: ON says nothing about rows without a partner. And it reads all of the source,
whatever is left of the target, since each row of it counts for a clause of this kind. A check in the source itself
might not run: for matched rows alone Spark makes an inner join, and does not read the source to its end where no
row of the target is left (adaptive execution), or reads only what the target's other keys select (dynamic
pruning).

The clause's INSERT is a copy of the client's first one, so that it names no other columns. A MERGE without one is
left alone, and so is one with WHEN NOT MATCHED BY SOURCE, for which each row of the target counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from sqlglot import TokenType, exp

from rewriter.scopes.blocks import Scope, own_parts
from rewriter.semijoins.reducer import Reducer
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.sql.conditions import conjuncts, depths, operands_of
from rewriter.sql.statement import Statement
from rewriter.vocabulary.cited import cited
from rewriter.vocabulary.skip_reason import Refusal, SkipReason


@dataclass(frozen=True)
class MergeCheck:
    """The place of the clause, and the text for it."""

    # The offset of the first WHEN NOT MATCHED, and the client's text behind its THEN.
    start: int
    action: str
    # The source's side of equalities, by the target's column in lower case.
    keys: Mapping[str, str]
    # Conditions in ON on the source alone: a row that does not satisfy them has no partner, whatever its key.
    filters: tuple[str, ...]

    def has_key(self, column: str) -> bool:
        """True if the check can tell the keys of a column of the target, in any case."""
        return column.lower() in self.keys

    def checkable(self, result: Reducer | Refusal) -> tuple[Reducer | Refusal, ...]:
        """The reducer; or, if the check cannot tell all of its keys, its alternatives whose keys it can tell."""
        if isinstance(result, Refusal) or all(map(self.has_key, result.columns)):
            return (result,)
        left = tuple(one for one in result.alternatives if all(map(self.has_key, one.columns)))
        return left or (SkipReason.MERGE_UNCHECKED.because(cited(result.join)),)


def merge_check(statement: Statement, scope: Scope, filters: BlockFilters) -> MergeCheck | Refusal:
    """The check of a MERGE, by the scope of its join; or the reason why it can have none."""
    clause = _first_insert(statement)
    if clause is None:
        return SkipReason.MERGE_UNCHECKED.because("it has no WHEN NOT MATCHED THEN INSERT")
    join, source = scope.block.tree.joins[0], scope.block.tree.leaves[-1]
    own = tuple(filter_.text for filter_ in filters.holding_for(join, source))
    found = list(_equalities(statement, scope, filters))
    times = Counter(column for column, _ in found)
    limited = set(_limited(scope))
    keys = {column: text for column, text in found if times[column] == 1 and column not in limited}
    return MergeCheck(*clause, keys, own)


def _equalities(statement: Statement, scope: Scope, filters: BlockFilters) -> Iterator[tuple[str, str]]:
    """The columns of the target that ON compares by `=` with the source, each with the text of that side."""
    join, (target, source) = scope.block.tree.joins[0], scope.block.tree.leaves
    for conjunct in filters.located(join):
        sides = operands_of(statement, conjunct) if isinstance(conjunct.tree, exp.EQ) else ()
        for column, other in permutations(sides, 2):
            found = scope.resolve(column.tree, join)
            is_of_source = filters.only_reader(other.tree, join) is source and filters.is_repeatable(other)
            if found is not None and found.leaf is target and is_of_source:
                yield found.name.lower(), other.text(statement)


def _limited(scope: Scope) -> Iterator[str]:
    """The columns of the target that a condition reads without the source, in lower case.

    With our condition beside it, Spark may know that no row of the target is left. It then fails to plan a MERGE
    that Iceberg writes by copying (None.get, Spark 4.1).
    """
    join, (target, _) = scope.block.tree.joins[0], scope.block.tree.leaves
    for term in conjuncts(join.condition):
        operands = [scope.resolve(column, join) for column in own_parts(term)[0]]
        of_target = [operand for operand in operands if operand is not None and operand.leaf is target]
        if len(of_target) == len([operand for operand in operands if operand is not None]):
            yield from (operand.name.lower() for operand in of_target)


def _first_insert(statement: Statement) -> tuple[int, str] | None:
    """The offset of the first WHEN NOT MATCHED, and the text of its INSERT; None without one."""
    tokens = statement.tokens
    outside = [at for at, depth in depths(tokens, 0, len(tokens)) if depth == 0]
    starts = [at for at in outside if tokens[at].token_type is TokenType.WHEN]
    whens = statement.tree.args["whens"].expressions
    if len(starts) != len(whens):
        return None
    end = len(tokens) - (tokens[-1].token_type is TokenType.SEMICOLON)
    clauses = zip(whens, starts, [*starts[1:], end], strict=True)
    found = next(((start, stop) for when, start, stop in clauses if not when.args["matched"]), None)
    if found is None:
        return None
    start, stop = found
    then = [at for at in outside if start < at < stop and tokens[at].token_type is TokenType.THEN]
    if len(then) != 1:
        return None
    return tokens[start].start, statement.text[tokens[then[0]].end + 1 : tokens[stop - 1].end + 1].strip()
