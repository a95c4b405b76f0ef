"""The switches behind `mutations`: each undoes one clause of one rule, in place, for the length of a test."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import pytest
from sqlglot import exp

from rewriter import KeySet, SkipReason, rewrite
from rewriter.catalog.prunable import key_refusal
from rewriter.domains.consumers import ACCEPTS_NOTHING
from rewriter.domains.cover import Box, Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.literals import _WRITERS
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.files import bounds, file_facts
from rewriter.files.bounds import ColumnBounds
from rewriter.files.file_index import Bounds, FileIndex, Lack
from rewriter.predicates import scan_predicate
from rewriter.predicates.partition_predicate import Budget
from rewriter.predicates.predicate import Restriction
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS, NEVER_PADS, PROBED, JoinKind, Side
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.kept_keys import KeptKeys
from rewriter.scopes.outer_to_inner import _BlockJoins
from rewriter.scopes.readers import Readers
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins import literal_filters, reducers, side_filters, small_sides, snowflake
from rewriter.semijoins.equalities import ItemPartner, KeyEquality
from rewriter.semijoins.followed_facts import FactFollower
from rewriter.semijoins.key_query import KeyColumn, key_set_query
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.partition_query import PartitionList, PartitionsQuery, partitions_query
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.sql import deterministic_functions, null_logic, repeatable, statement
from rewriter.sql.conditions import alternatives, conjuncts
from rewriter.sql.negations import SignedCondition
from rewriter.sql.null_logic import Possible
from rewriter.sql.statement import Statement
from rewriter.vocabulary.skip_reason import Refusal

Switch = Callable[[pytest.MonkeyPatch], None]

_BOTH = frozenset(Side)


def answers(target: str, answer: object) -> Switch:
    """A function that always answers the same."""
    return lambda patch: patch.setattr(target, lambda *_, **__: answer)


class _Anything:
    """Equal to whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def outputs_have_the_types_shown(patch: pytest.MonkeyPatch) -> None:
    """Each output of a view's text has the type that the view shows."""
    patch.setattr("rewriter.planning.views._ViewQuery._type_of", lambda *_: _Anything())


def scans_have_any_clauses(patch: pytest.MonkeyPatch) -> None:
    """An inserted scan is proven whatever clauses it has."""
    patch.setattr("rewriter.predicates.splice._clauses", lambda _: _Anything())


def becomes(target: str, value: object) -> Switch:
    """A table, a limit or a property with another value."""
    return lambda patch: patch.setattr(target, value)


def every_function_is_the_servers(patch: pytest.MonkeyPatch) -> None:
    """No function counts as missing."""
    # The package has a function of the module's name.
    patch.setattr(import_module("rewriter.plan"), "called", lambda *_: None)


def holds_on_both_sides(kind: JoinKind) -> Switch:
    """Rows of either side count as having satisfied the join's condition."""
    return lambda patch: patch.setitem(CONDITION_HOLDS, kind, _BOTH)


def probed_on_both_sides(patch: pytest.MonkeyPatch) -> None:
    """A fact may be on either side of ANTI."""
    patch.setitem(PROBED, JoinKind.ANTI, _BOTH)


def subqueries_see_rows_of_the_whole_from(patch: pytest.MonkeyPatch) -> None:
    """A subquery in an ON counts as one in the WHERE."""

    def unsound(outer: Scope, _: exp.Expr) -> tuple[Scope, Join]:
        return outer, outer.block.tree.joins[-1]

    patch.setattr("rewriter.scopes.outer_row._join_of", unsound)


def never_pads(kind: JoinKind) -> Switch:
    """Conditions above the join count as seeing its rows as they are."""
    return lambda patch: patch.setitem(NEVER_PADS, kind, _BOTH)


# Every side of every join, as if each kept its rows only if its condition holds.
ANY_SIDE = dict.fromkeys(JoinKind, _BOTH)


def only_listed_partitions_match(patch: pytest.MonkeyPatch) -> None:
    """The partitions that match count as all that can, also those that were not in the list."""

    def unsound(restriction: Restriction, matches: PartitionMatches, _: int) -> str:
        cover = KeySet.of(matches.type_names, matches.matching, null_safe=(True,) * len(restriction.columns))
        return f"({cover_sql(cover.cover(restriction.names)) if cover.rows else 'FALSE'})"

    patch.setattr(scan_predicate, "partition_list_predicate", unsound)


def padding_matches_nothing(patch: pytest.MonkeyPatch) -> None:
    """A condition on padded columns counts as rejecting nulls, whatever Spark says of them."""

    def unsound(listed: PartitionList, **parts: Any) -> PartitionsQuery:
        return partitions_query(listed, **{**parts, "may_be_padding": False})

    patch.setattr("rewriter.semijoins.partition_reducers.partitions_query", unsound)


def padding_by_the_join_next_to_it(patch: pytest.MonkeyPatch) -> None:
    """A join counts as padded by the one that it stands in, not by those further up."""

    def unsound(join: Join) -> None:
        above = join.parent
        pads = above is not None and above.side_of_join(join) not in NEVER_PADS[above.kind]
        join.padded_by = above if pads else None

    patch.setattr(Join, "mark_padded", unsound)


def hidden_sides_are_seen(patch: pytest.MonkeyPatch) -> None:
    """The columns of a semi-join's right side count as named above it too."""
    patch.setattr(Leaf, "is_visible_at", lambda leaf, join: join.side_of(leaf) is not None)


def parts_of_any_and(patch: pytest.MonkeyPatch) -> None:
    """A part of any AND counts as a conjunct of an ON or WHERE, under OR and NOT too."""

    def unsound(placeholder: exp.Identifier) -> bool:
        both = placeholder.parent.parent if placeholder.parent is not None else None
        if not isinstance(both, exp.And):
            return False
        both.replace(both.expression if both.this is placeholder.parent else both.this)
        return True

    patch.setattr("rewriter.predicates.splice._drop", unsound)


def any_fact_is_followed(patch: pytest.MonkeyPatch) -> None:
    """The equalities of all facts of a block count as those of the one that is followed."""

    def unsound(follower: FactFollower, fact: ItemPartner) -> list[KeyEquality]:
        return [one for of_leaf in follower.equalities_in(fact.scope).values() for one in of_leaf]

    patch.setattr(FactFollower, "_equalities_of", unsound)


def any_two_columns_are_united(patch: pytest.MonkeyPatch) -> None:
    """`coalesce(a.k, b.k)` counts as one column, whatever the join compares."""
    patch.setattr(Scope, "_compared_below", lambda _, operands, __: tuple(filter(None, operands)))


def every_name_is_defined_once(patch: pytest.MonkeyPatch) -> None:
    """Of several CTEs of one name the outermost counts as meant."""

    def unsound(scopes: Scopes) -> Counter[str]:
        return Counter({cte.alias.upper().casefold() for cte in scopes.statement.tree.find_all(exp.CTE)})

    patch.setattr(Scopes, "_cte_names", property(unsound))


def terms_taken_apart(module: str, *kinds: type[exp.Expr]) -> Switch:
    """What stands under OR or NOT counts as a conjunct."""

    def unsound(condition: exp.Expr | None) -> Iterator[exp.Expr]:
        for term in conjuncts(condition):
            if isinstance(term, kinds):
                yield from (side.unnest() for side in (term.this, term.expression) if side is not None)
            else:
                yield term

    return lambda patch: patch.setattr(f"rewriter.{module}.conjuncts", unsound)


def null_safe_equality_is_equality(patch: pytest.MonkeyPatch) -> None:
    """`a <=> b` counts as `a = b`."""

    def unsound(condition: exp.Expr | None) -> Iterator[exp.Expr]:
        for term in conjuncts(condition):
            null_safe = isinstance(term, exp.NullSafeEQ)
            yield exp.EQ(this=term.this.copy(), expression=term.expression.copy()) if null_safe else term

    patch.setattr("rewriter.semijoins.equalities.conjuncts", unsound)


def null_tests_are_never_true(patch: pytest.MonkeyPatch) -> None:
    """IS NULL and <=> let no padded row pass."""
    for test in (exp.Is, exp.NullSafeEQ):
        patch.setitem(null_logic._RULES, test, lambda *_: Possible.FALSE)  # noqa: SLF001


def functions_of_null_are_null(patch: pytest.MonkeyPatch) -> None:
    """Functions that put something in place of null, and CASE, are null where their first operand is."""
    for kind in (exp.Coalesce, exp.Case):
        patch.delitem(null_logic._RULES, kind)  # noqa: SLF001
    patch.setitem(null_logic.NULL_PROPAGATING, exp.Coalesce, ("this",))
    patch.setitem(null_logic.NULL_PROPAGATING, exp.Case, ("this",))


def nulls_wherever_padding_is_read(patch: pytest.MonkeyPatch) -> None:
    """An output that shows padding counts as null in all rows that the padded rows change."""
    sound = _BlockJoins._shows_null  # noqa: SLF001 - the rule that is switched off

    def unsound(joins: Any, *arguments: Any) -> bool:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(KeptKeys, "has", lambda *_: True)
            within.setattr("rewriter.scopes.lineage._CHOOSING_CLAUSES", ())
            return sound(joins, *arguments)

    patch.setattr(_BlockJoins, "_shows_null", unsound)


def any_reader_drops_padded_rows(patch: pytest.MonkeyPatch) -> None:
    """One reader that drops padded rows counts for all."""

    def unsound(joins: Any, scope: Any, is_null: Any) -> bool:
        readers = joins._readers.readers_of(scope.block.select)  # noqa: SLF001
        return any(joins._is_rejected_by(reader, scope, is_null) for reader in readers)  # noqa: SLF001

    patch.setattr(_BlockJoins, "_is_rejected_outside", unsound)


def a_cte_is_a_table(patch: pytest.MonkeyPatch) -> None:
    """The name of a CTE is taken for that of a table, where it is looked up and where it is read."""
    patch.setattr(statement, "_is_surely_cte", lambda *_: False)
    patch.setattr(Scopes, "is_cte", lambda *_: False)


def any_reader_of_a_cte(patch: pytest.MonkeyPatch) -> None:
    """A CTE is looked into however often it is used."""
    sound = Scopes.query_of
    patch.setattr(Scopes, "query_of", lambda scopes, leaf, only_once=False: sound(scopes, leaf))  # noqa: ARG005


def only_readers_with_filters(patch: pytest.MonkeyPatch) -> None:
    """A reader of a CTE that has no filter counts as none."""
    sound = OuterFilterFinder._paths_through  # noqa: SLF001 - the rule that is switched off

    def unsound(readers: Any, *arguments: Any) -> Any:
        return [way for way in sound(readers, *arguments) if way]

    patch.setattr(OuterFilterFinder, "_paths_through", unsound)


def any_number_of_readers(patch: pytest.MonkeyPatch) -> None:
    """The readers that are known count as all."""
    patch.setattr(Readers, "readers_of", Readers.known_readers_of)


def first_key_lost(patch: pytest.MonkeyPatch) -> None:
    """A key set without its smallest key."""
    sound = KeySet.of
    patch.setattr(KeySet, "of", lambda *keys, **how: replace(found := sound(*keys, **how), rows=found.rows[1:]))


def known_functions(*names: str) -> Switch:
    """Functions that are not the same each time, or not known, count as deterministic."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(repeatable, "FILTER_FUNCTIONS", deterministic_functions.FILTER_FUNCTIONS | {*names})
        patch.setattr(repeatable, "QUERY_FUNCTIONS", deterministic_functions.QUERY_FUNCTIONS | {*names})

    return apply


def rows_by_order_and_chance(patch: pytest.MonkeyPatch) -> None:
    """ORDER BY and LIMIT may stand in a key query, whatever they choose."""
    patch.setattr(repeatable, "_UNREPEATABLE", ())


def numbers_of_rows_are_known(patch: pytest.MonkeyPatch) -> None:
    """Windows count as giving the same each time, whatever their function."""
    known_functions("row_number")(patch)
    patch.setattr(repeatable, "_gives_the_same", lambda _: True)


def main_query_alone_is_repeatable(patch: pytest.MonkeyPatch) -> None:
    """The CTEs that a small side reads count as giving the same rows each time."""
    sound = small_sides._repeatable_part  # noqa: SLF001 - the rule that is switched off

    def unsound(scopes: Scopes, query: exp.Expr, *, of_partitions: bool) -> str | Refusal:
        located = repeatable.located_query(scopes.statement, query)
        is_cte = isinstance(query.parent, exp.CTE)
        return (
            located.text if is_cte and located is not None else sound(scopes, query, of_partitions=of_partitions)
        )

    patch.setattr(small_sides, "_repeatable_part", unsound)


def keys_are_cast(patch: pytest.MonkeyPatch) -> None:
    """A small side of another type is asked for its keys in the fact column's type."""
    patch.setattr(
        "rewriter.semijoins.equalities.key_refusal", lambda facts, column, _: key_refusal(facts, column, None)
    )

    def cast(*, keys: Sequence[str], columns: Sequence[KeyColumn], **others: Any) -> Any:
        pairs = zip(keys, columns, strict=True)
        cast_keys = [f"CAST({key} AS {column.type_name.upper()})" for key, column in pairs]
        return key_set_query(keys=cast_keys, columns=columns, **others)

    patch.setattr(reducers, "key_set_query", cast)


def keys_are_asked_for_as_shown(patch: pytest.MonkeyPatch) -> None:
    """A key arrives as Spark shows it to a client."""
    patch.setattr("rewriter.semijoins.key_query.key_expression", lambda _, key: key)


def key_type(type_name: str) -> Switch:
    """Keys of one more type are ordered and written as strings are."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(_WRITERS, type_name, lambda _, value: f"CAST('{value}' AS {type_name.upper()})")

    return apply


def failed_key_query_found_no_keys(patch: pytest.MonkeyPatch) -> None:
    """A key query without an answer counts as one that found nothing."""
    sound = rewrite._usable  # noqa: SLF001 - the rule that is switched off

    def unsound(reducer: Any, answer: Any) -> Any:
        empty = KeySet(tuple(column.type_name for column in reducer.key_query.columns), ())
        return sound(reducer, empty if isinstance(answer, SkipReason) else answer)

    patch.setattr(rewrite, "_usable", unsound)


def first_keys_are_all(patch: pytest.MonkeyPatch) -> None:
    """A list of keys that was cut off counts as whole."""
    sound = rewrite._usable  # noqa: SLF001 - the rule that is switched off

    def unsound(reducer: Any, answer: Any) -> Any:
        if isinstance(answer, KeySet):
            answer = replace(answer, rows=answer.rows[: reducer.key_query.rows_max])
        return sound(reducer, answer)

    patch.setattr(rewrite, "_usable", unsound)


def some_branches_of_a_disjunction(patch: pytest.MonkeyPatch) -> None:
    """What some branches of a disjunction say of the small side counts as said by all."""

    def unsound(filters: Any, disjunction: Any, leaf: Any, join: Any) -> str | None:
        terms = [term for branch in alternatives(filters._statement, disjunction) for term in branch]  # noqa: SLF001
        own = [t.text(filters._statement) for t in terms if filters.only_reader(t.tree, join) is leaf]  # noqa: SLF001
        return " OR ".join(own) or None

    patch.setattr(BlockFilters, "_implied", unsound)


def every_filter_drops_rows(patch: pytest.MonkeyPatch) -> None:
    """A filter on a FROM item counts as dropping its rows wherever it stands."""
    patch.setattr(BlockFilters, "holding_for_rows", lambda filters, leaf: filters._by_leaf.get(leaf, ()))  # noqa: SLF001


def every_equality_holds_in_a_snowflake(patch: pytest.MonkeyPatch) -> None:
    """The equalities of a snowflake count wherever they stand."""
    patch.setattr(snowflake, "is_passed_with", lambda at, _, leaf: at.side_of(leaf) is not None)


def every_filter_holds_in_a_snowflake(patch: pytest.MonkeyPatch) -> None:
    """The filters of a snowflake count wherever they stand."""
    sound = BlockFilters.joined_with

    def unsound(filters: BlockFilters, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(side_filters, "condition_holds", lambda *_: True)
            return sound(filters, *arguments)

    patch.setattr(BlockFilters, "joined_with", unsound)


def statements_of_any_kind(patch: pytest.MonkeyPatch) -> None:
    """What stores the text of a query is taken for a query."""
    sound = statement._refusal  # noqa: SLF001 - the rule that is switched off

    def unsound(read: Statement) -> SkipReason | None:
        return None if isinstance(read.tree, exp.Create) else sound(read)

    patch.setattr(statement, "_refusal", unsound)


def writers_of_what_they_read(patch: pytest.MonkeyPatch) -> None:
    """A statement that writes a table which it reads is taken for any other."""
    sound = statement._refusal  # noqa: SLF001 - the rule that is switched off

    def unsound(read: Statement) -> SkipReason | None:
        refusal = sound(read)
        return None if refusal is SkipReason.WRITES_WHAT_IT_READS else refusal

    patch.setattr(statement, "_refusal", unsound)


def targets_as_small_sides(patch: pytest.MonkeyPatch) -> None:
    """The table that an INSERT writes is read for keys as any other."""
    # The package has a function of the module's name.
    patch.setattr(import_module("rewriter.plan"), "with_written", lambda _, catalog: catalog)


def first_branch_alone(patch: pytest.MonkeyPatch) -> None:
    """A disjunction counts as its first branch."""
    patch.setattr(literal_filters, "_union", lambda covers: covers[0])


def conditions_without_not(patch: pytest.MonkeyPatch) -> None:
    """A condition under NOT counts as the condition."""
    sound = SignedCondition.of

    def unsound(tree: exp.Expr, *, is_negated: bool = False) -> SignedCondition:  # noqa: ARG001 - as it is called
        return sound(sound(tree).tree)

    patch.setattr(SignedCondition, "of", unsound)


def not_leaves_and_as_it_is(patch: pytest.MonkeyPatch) -> None:
    """`NOT (a AND b)` counts as `NOT a AND NOT b`."""
    patch.setattr(SignedCondition, "is_conjunction", property(lambda self: isinstance(self.tree, exp.And)))


def no_null_is_outside_of_tuples(patch: pytest.MonkeyPatch) -> None:
    """`(a, b) NOT IN (..)` counts as null where a or b is."""
    sound = literal_filters._outside  # noqa: SLF001 - the rule that is switched off

    def unsound(cover: Cover) -> Cover:
        boxes = (
            Box.of({column: replace(domain, nullable=False) for column, domain in box.domains})
            for box in sound(cover).boxes
        )
        return Cover.of(box for box in boxes if box is not None)

    patch.setattr(literal_filters, "_outside", unsound)


def any_text_of_digits_is_its_number(patch: pytest.MonkeyPatch) -> None:
    """'030' counts as 30."""
    patch.setattr(literal_filters, "_INTEGER_TEXT", re.compile("-?[0-9]+"))


def days_are_ordered_as_texts(patch: pytest.MonkeyPatch) -> None:
    """A date is ordered by a text as by the day that it names."""
    sound = literal_filters._Literals.compared  # noqa: SLF001 - the rule that is switched off

    def unsound(literals: Any, node: exp.Expr, *, is_ordered: bool = False) -> Any:  # noqa: ARG001 - as it is called
        return sound(literals, node)

    patch.setattr(literal_filters._Literals, "compared", unsound)  # noqa: SLF001 - the rule that is switched off


def any_literal_is_an_integer(patch: pytest.MonkeyPatch) -> None:
    """What an integer column is compared with counts as an integer."""
    patch.setattr(literal_filters._Literals, "compared", lambda *arguments, **_: int(arguments[1].name))  # noqa: SLF001 - the rule that is switched off


def files_without_bounds_hold_nulls_alone(patch: pytest.MonkeyPatch) -> None:
    """A file of which no bound is known counts as one of nulls alone."""
    sound = file_facts._RowReader._bounds  # noqa: SLF001 - the rule that is switched off

    def unsound(reader: Any, *arguments: Any) -> Iterator[tuple[str, Bounds]]:
        for name, known in sound(reader, *arguments):
            yield name, replace(known, only_nulls=known.low is None and known.high is None)

    patch.setattr(file_facts._RowReader, "_bounds", unsound)  # noqa: SLF001 - the rule that is switched off


def files_of_nulls_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    """A file of nulls alone counts as one without rows, also where null is asked for."""
    sound = FileIndex._holding_box  # noqa: SLF001 - the rule that is switched off

    def unsound(index: FileIndex, box: Box, numbers: Sequence[int]) -> list[int]:
        nulls = {number for column, _ in box.domains for number in index._nulls_alone(column)}  # noqa: SLF001
        return [number for number in sound(index, box, numbers) if number not in nulls]

    patch.setattr(FileIndex, "_holding_box", unsound)


def files_end_where_they_begin(patch: pytest.MonkeyPatch) -> None:
    """A file's lower bound counts as its upper one."""
    sound = ColumnBounds.of

    def unsound(type_name: str, files: Any) -> ColumnBounds:
        found = sound(type_name, files)
        return replace(found, highs=found.lows)

    patch.setattr(ColumnBounds, "of", unsound)


def unknown_bounds_are_those_of_another_file(patch: pytest.MonkeyPatch) -> None:
    """A bound that is not known counts as one that is."""
    sound = bounds._positions  # noqa: SLF001 - the rule that is switched off

    def unsound(on: Any, values: Any, unknown: Any) -> Any:
        found = sound(on, values, unknown)
        known = [position for position in found if position != unknown]
        return [known[0] if known and position == unknown else position for position in found]

    patch.setattr(bounds, "_positions", unsound)


def lacks_are_of_any_column(patch: pytest.MonkeyPatch) -> None:
    """A list of lacked tuples counts as one list for each of its columns."""

    def unsound(_: Any, lack: Lack, domains: Any) -> bool:
        places = [place for place, column in enumerate(lack.columns) if column in domains]
        asked = [domains[lack.columns[place]] for place in places]
        if not places or any(domain.nullable or domain.width > len(lack.tuples) for domain in asked):
            return False
        lacked = {tuple(values[place] for place in places) for values in lack.tuples}
        return all(values in lacked for values in product(*(domain.values for domain in asked)))

    patch.setattr(FileIndex, "_lacks_all", unsound)


def bounds_of_any_type(patch: pytest.MonkeyPatch) -> None:
    """Bounds count as of the type that the column has now."""
    sound = file_facts._RowReader._bounds  # noqa: SLF001 - the rule that is switched off

    def unsound(reader: Any, said: Any, rows: Any) -> Any:
        known = {name: type_name for name, (type_name, _) in reader._columns.items()}  # noqa: SLF001
        return sound(reader, {name: {**value, "type": known.get(name)} for name, value in said.items()}, rows)

    patch.setattr(file_facts._RowReader, "_bounds", unsound)  # noqa: SLF001


def all_columns_are_partition_columns(patch: pytest.MonkeyPatch) -> None:
    """Keys of pairs are said of all their columns at once."""
    patch.setattr(
        scan_predicate,
        "_partition_columns",
        lambda _, restriction: frozenset(name.lower() for name in restriction.names),
    )


def files_stay_in_their_partitions(patch: pytest.MonkeyPatch) -> None:
    """What is asked of partition columns chooses files as what is asked of others does."""
    sound = scan_predicate._projected  # noqa: SLF001 - the rule that is switched off

    def unsound(cover: Any, columns: Any) -> Any:
        return cover if "p" not in columns else sound(cover, columns)

    patch.setattr(scan_predicate, "_projected", unsound)


def unsent_counts_as_sent(patch: pytest.MonkeyPatch) -> None:
    """Data columns are said whatever a metastore is told of partition columns."""
    patch.setattr(
        "rewriter.rewrite.Budget.without_metastore", lambda chars_max: Budget(ACCEPTS_NOTHING, chars_max)
    )
