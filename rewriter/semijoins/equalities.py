"""Equalities that the rows of a fact must satisfy, from joins, WHERE and the subqueries of conditions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from rewriter.catalog.prunable import key_refusal
from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.literals import TIMES
from rewriter.scopes.blocks import ColumnOrigin, Operand, Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS, PROBED, JoinKind
from rewriter.scopes.join_tree import Join, Leaf, TableReference
from rewriter.scopes.lineage import of_one_type, origins_by_branch
from rewriter.scopes.outer_row import place_of_subquery
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import BlockCauses
from rewriter.semijoins.key_query import KeyColumn
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.small_sides import is_plain_exists, query_key
from rewriter.sql.conditions import conjuncts, operands_of
from rewriter.sql.equality import Equality, equality_of
from rewriter.sql.inline_tables import read_by_generator
from rewriter.sql.statement import is_plain_name
from rewriter.vocabulary.cited import cited
from rewriter.vocabulary.identifiers import TableName, quoted
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# The rule that narrows a fact by a join; any other kind is an outer join.
_RULE_OF_KIND = {JoinKind.INNER: Rule.INNER_JOIN, JoinKind.SEMI: Rule.SEMI_JOIN}


@dataclass(frozen=True)
class ItemPartner:
    """A FROM item in which a fact's row must find a partner at a join."""

    scope: Scope
    join: Join
    leaf: Leaf


@dataclass(frozen=True, eq=False)
class QueryPartner:
    """A subquery with a number of columns: its answer must hold the values of a fact's row."""

    query: exp.Expr
    width: int
    # True if it is an operand of `=`, so that it is one value.
    is_scalar: bool = False


Partner: TypeAlias = ItemPartner | QueryPartner


@dataclass(frozen=True, eq=False)
class KeyEquality:
    """A column of a fact that equals `key`, an expression over its partner, in every row that counts."""

    # The column as the equality names it: a derived table may show a table's column by that name.
    operand: Operand
    origin: ColumnOrigin
    partner: Partner
    key: str
    shown: str
    null_safe: bool = False
    rules: frozenset[Rule] = frozenset()
    # The tables that subqueries in the key read.
    tables: frozenset[TableName] = frozenset()
    # The type of the key, None if only the key query tells it; and the partner's columns in it, in lower case.
    key_type: str | None = None
    reads: frozenset[str] = frozenset()

    @property
    def is_expression(self) -> bool:
        """True if the key is more than a column."""
        return Rule.KEY_EXPRESSIONS in self.rules

    @property
    def column(self) -> str:
        """The fact's column."""
        return self.origin.column.name

    @property
    def is_on_data(self) -> bool:
        """True if the column is no partition column, but files or buckets can be left out by it."""
        return self.origin.facts.is_data_column(self.origin.column)

    @property
    def takes_ranges(self) -> bool:
        """True if ranges of the column leave out files or partitions: they leave out no buckets."""
        facts = self.origin.facts
        return not self.is_on_data or facts.behind is not None or self.column.lower() in facts.file_columns

    @property
    def is_scalar(self) -> bool:
        """True if the partner must have no more than one row."""
        return isinstance(self.partner, QueryPartner) and self.partner.is_scalar

    @property
    def asked(self) -> KeyColumn:
        """The column of a key query that asks for its keys."""
        return KeyColumn(self.origin.column.type_name, self.null_safe)


@dataclass(frozen=True, eq=False)
class DayEquality:
    """`cast(t.at AS date) = d.day`: an equality whose key is the day of a fact's timestamps."""

    equality: KeyEquality


@dataclass(frozen=True)
class RefusedEquality:
    """A fact's scan in an equality, and the reason why the equality does not reduce it."""

    reference: TableReference
    refusal: Refusal


@dataclass(frozen=True, eq=False)
class _KeySide:
    """The other side of an equality: the FROM item that it reads, and the key as text."""

    leaf: Leaf
    key: str
    shown: str
    type_name: str | None
    # The item's columns that it reads, in lower case.
    reads: frozenset[str]
    is_expression: bool = False
    # The tables that subqueries in the key read.
    tables: frozenset[TableName] = frozenset()


# Equalities that a fact's rows must satisfy, and reasons for those that are of no use.
Found: TypeAlias = KeyEquality | DayEquality | RefusedEquality


class EqualityFinder:
    """Finds the equalities of one block's joins. All tables of the statement are in the catalog."""

    def __init__(self, scopes: Scopes, scope: Scope, filter_finder: OuterFilterFinder) -> None:
        self._scopes = scopes
        self._scope = scope
        self._filters = filter_finder.filters_of(scope)
        self._causes = BlockCauses(scopes, filter_finder, scope)

    def matches(self, join: Join) -> Iterator[Found]:
        """The equalities of the join's condition with facts below it, on either side of `=`."""
        for left, right in self._scope.merged(join):
            yield from self._of_items(join, left, self._column_side(right))
            yield from self._of_items(join, right, self._column_side(left))
        for pair, right in self._scope.united_by_using(join):
            for left in of_one_type(self._scopes, pair):
                yield from self._of_items(join, left, self._column_side(right))
        for term in conjuncts(join.condition):
            yield from self._of_term(join, term)

    def _of_term(self, join: Join, term: exp.Expr) -> Iterator[Found]:
        equality = equality_of(term)
        if equality is not None:
            yield from self._of_equality(join, equality, *equality.sides)
            yield from self._of_equality(join, equality, *equality.sides[::-1])
        elif isinstance(term, exp.In) and isinstance(query := term.args.get("query"), exp.Subquery):
            side = term.this.unnest()
            members = side.expressions if isinstance(side, exp.Tuple) else [side]
            yield from self._of_query(join, [member.unnest() for member in members], query.this, Rule.IN_SUBQUERY)
        elif isinstance(term, exp.Exists):
            yield from self._of_exists(join, term.this.unnest())

    def _of_equality(
        self, join: Join, equality: Equality, fact_side: exp.Expr, small_side: exp.Expr
    ) -> Iterator[Found]:
        null_safe = equality.null_safe
        if isinstance(small_side, exp.Query):
            # Without a row a scalar subquery is null: `<=>` would match it, and no key query shows that.
            yield from () if null_safe else self._of_query(join, [fact_side], small_side, Rule.SCALAR_SUBQUERY)
            return
        fact, column = self._scope.resolve(fact_side, join), self._scope.resolve(small_side, join)
        small = (
            self._column_side(column)
            if column is not None
            else self._expression_side(join, equality.term, small_side)
        )
        if fact is not None and small is not None:
            yield from self._of_items(join, fact, small, null_safe=null_safe)
        elif fact is not None and not null_safe:
            yield from self._of_outer_row(join, fact, small_side)
        elif small is not None and not null_safe and (pair := self._united(fact_side, join)):
            for united in pair:
                yield from self._of_items(join, united, small)
        elif small is not None and not null_safe:
            yield from self._of_days(join, fact_side, small)

    def _united(self, side: exp.Expr, join: Join) -> tuple[Operand, ...]:
        """The two columns of a `coalesce`, each of which has the value or is null, in rows of a FULL JOIN."""
        return of_one_type(self._scopes, self._scope.united(side, join))

    def _of_days(self, join: Join, fact_side: exp.Expr, small: _KeySide) -> Iterator[DayEquality]:
        """`cast(t.at AS date) = d.day`, also as `t.at::date`. Beside any other type Spark casts the days."""
        fact = self._scope.resolve(fact_side.this.unnest(), join) if _is_day(fact_side) else None
        if fact is None or fact.leaf is small.leaf or small.type_name not in {None, "date"}:
            return
        partner = ItemPartner(self._scope, join, small.leaf)
        for found in self._matched(join, fact, partner, replace(small, type_name=None), null_safe=False):
            if not isinstance(found, KeyEquality) or not found.is_on_data:
                continue
            if found.origin.column.type_name in TIMES:
                yield DayEquality(replace(found, shown=f"CAST({fact} AS DATE) = {small.shown}"))

    def _of_items(
        self, join: Join, fact: Operand, small: _KeySide, *, null_safe: bool = False
    ) -> Iterator[KeyEquality | RefusedEquality]:
        if fact.leaf is not small.leaf:
            partner = ItemPartner(self._scope, join, small.leaf)
            yield from self._matched(join, fact, partner, small, null_safe=null_safe)

    def _of_outer_row(
        self, join: Join, fact: Operand, outer_side: exp.Expr
    ) -> Iterator[KeyEquality | RefusedEquality]:
        """`.. WHERE s.ds = c.ds` in a subquery of a block that has c: for a row of c only rows of its day count.

        Other rows of s change nothing for that row, whatever the subquery makes of them and wherever it stands.
        """
        place = place_of_subquery(self._scopes, self._scope)
        if place is None or not self._scope.certainly_lacks(outer_side):
            return
        outer, outer_at = place
        small = outer.resolve(outer_side, outer_at)
        # Spark may have a FROM without the fact in memory, just as it stands, with a LATERAL VIEW too.
        if small is not None and not read_by_generator(small.leaf.node):
            partner = ItemPartner(outer, outer_at, small.leaf)
            yield from self._matched(join, fact, partner, self._column_side(small), null_safe=False)

    def _of_query(
        self, join: Join, fact_sides: list[exp.Expr], query: exp.Expr, rule: Rule
    ) -> Iterator[KeyEquality | RefusedEquality]:
        """`t.k IN (SELECT ..)`, `(t.k, t.l) IN (SELECT ..)`, `t.k = (SELECT ..)`: the query's rows are keys."""
        partner = QueryPartner(query, len(fact_sides), rule is Rule.SCALAR_SUBQUERY)
        for index, side in enumerate(fact_sides):
            fact = self._scope.resolve(side, join)
            if fact is None:
                continue
            for origin in origins_by_branch(self._scopes, fact.leaf, fact.name):
                refusal = self._stays(join, fact) or key_refusal(origin.facts, origin.column, None)
                if refusal is not None:
                    yield RefusedEquality(origin.reference, refusal)
                else:
                    rules = self._rules(join, fact, origin, rule)
                    yield KeyEquality(fact, origin, partner, query_key(index), f"{fact} = (subquery)", rules=rules)

    def _of_exists(self, join: Join, query: exp.Expr) -> Iterator[KeyEquality | RefusedEquality]:
        """`EXISTS (SELECT .. FROM r WHERE r.k = t.k AND ..)` is a semi-join."""
        inner = self._scopes.scope_of(query)
        if inner is None or not is_plain_exists(query):
            return
        for term in conjuncts(inner.block.tree.joins[-1].condition):
            equality = equality_of(term)
            if equality is not None:
                yield from self._correlated(join, inner, equality, *equality.sides)
                yield from self._correlated(join, inner, equality, *equality.sides[::-1])

    def _correlated(
        self, join: Join, inner: Scope, equality: Equality, outer_side: exp.Expr, inner_side: exp.Expr
    ) -> Iterator[KeyEquality | RefusedEquality]:
        top = inner.block.tree.joins[-1]
        small = inner.resolve(inner_side, top)
        if small is None or not inner.certainly_lacks(outer_side):
            return
        fact = self._scope.resolve(outer_side, join)
        if fact is not None:
            partner = ItemPartner(inner, top, small.leaf)
            side = self._column_side(small)
            yield from self._matched(join, fact, partner, side, null_safe=equality.null_safe)

    def _matched(
        self, join: Join, fact: Operand, partner: ItemPartner, small: _KeySide, *, null_safe: bool
    ) -> Iterator[KeyEquality | RefusedEquality]:
        for origin in origins_by_branch(self._scopes, fact.leaf, fact.name):
            refusal = self._stays(join, fact) or key_refusal(origin.facts, origin.column, small.type_name)
            if refusal is None and null_safe and _may_be_padding(join, fact, partner, origin):
                refusal = SkipReason.NULL_SAFE_OVER_NULLS.because(cited(f"{fact} <=> {small.shown}"))
            if refusal is not None:
                yield RefusedEquality(origin.reference, refusal)
            else:
                shown = f"{fact} {'<=>' if null_safe else '='} {small.shown}"
                rules = self._rules(join, fact, origin, self._subquery_rule(join, partner))
                rules |= {Rule.NULL_SAFE} if null_safe else set()
                rules |= {Rule.KEY_EXPRESSIONS} if small.is_expression else set()
                yield KeyEquality(
                    fact,
                    origin,
                    partner,
                    small.key,
                    shown,
                    null_safe=null_safe,
                    rules=rules,
                    tables=small.tables,
                    key_type=small.type_name,
                    reads=small.reads,
                )

    def _stays(self, join: Join, fact: Operand) -> Refusal | None:
        """The refusal if rows of the fact reach the result of the join without a partner."""
        if join.side_of(fact.leaf) in CONDITION_HOLDS[join.kind] | PROBED[join.kind]:
            return None
        return SkipReason.OUTER_JOIN.because(self._causes.kept(join, fact.leaf))

    def _rules(self, join: Join, fact: Operand, origin: ColumnOrigin, subquery: Rule | None) -> frozenset[Rule]:
        rules = rules_of(self._scopes, self._scope, join, fact.leaf, facts=origin.facts, subquery=subquery)
        return rules | {Rule.TIMES} if origin.column.type_name in TIMES else rules

    def _subquery_rule(self, join: Join, partner: ItemPartner) -> Rule | None:
        """The rule for a fact and its partner in two blocks, one in a subquery of the other."""
        if partner.join is join:
            return None
        is_outside = self._scope.block.select.find_ancestor(exp.Select) is partner.scope.block.select
        return Rule.PROBED if is_outside else Rule.EXISTS

    def _column_side(self, operand: Operand) -> _KeySide:
        key = f"{operand.leaf.alias_text(self._scopes.statement)}.{quoted(operand.name)}"
        return _KeySide(operand.leaf, key, str(operand), operand.type_name, frozenset({operand.name.lower()}))

    def _expression_side(self, join: Join, term: exp.Expr, side: exp.Expr) -> _KeySide | None:
        """An expression over one FROM item, such as `cast(d.day AS STRING)`."""
        leaf = self._filters.only_reader(side, join)
        if leaf is None or leaf.is_padded_below(join):
            # An expression over padding nulls may give a key that no row of the item gives.
            return None
        if not all(is_plain_name(column.name) for column in side.find_all(exp.Column)):
            # A name in ON is a column's. In the SELECT of a key query it may be a pattern for several.
            return None
        conjunct = self._filters.located_term(join, term)
        for operand in operands_of(self._scopes.statement, conjunct) if conjunct is not None else ():
            if operand.tree is side and self._filters.is_repeatable(operand):
                text = operand.text(self._scopes.statement)
                tables = self._filters.tables_of(side)
                reads = frozenset(column.name.lower() for column in self._scopes.own_parts(side)[0])
                return _KeySide(leaf, text, text, None, reads, is_expression=True, tables=tables)
        return None


# sqlglot reads `date(t.at)`, which may be a function of the user's own, as exp.Cast.
_CASTS: tuple[type[exp.Expr], ...] = (exp.TryCast,)


def _is_day(side: exp.Expr) -> bool:
    """True for a cast to a date."""
    if not isinstance(side, exp.Cast) or type(side) not in _CASTS:
        return False
    return side.to.this is exp.DType.DATE and not side.args.get("format")


def rules_of(  # noqa: PLR0913 - the place of the fact, and what it is narrowed by
    scopes: Scopes, scope: Scope, join: Join, fact: Leaf, *, facts: TableFacts, subquery: Rule | None
) -> frozenset[Rule]:
    """The rules that narrow a fact by a join, or by a subquery in the join's condition."""
    rules = {_RULE_OF_KIND.get(join.kind, Rule.OUTER_JOIN)}
    if join.side_of(fact) in PROBED[join.kind]:
        rules = {Rule.PROBED}
    if subquery is not None:
        rules = rules - {Rule.INNER_JOIN} | {subquery}
    if scope.block.is_merge:
        rules = {Rule.MERGE}
    if any(other.is_made_inner for other in scope.block.tree.joins):
        rules.add(Rule.MADE_INNER)
    if scopes.query_of(fact) is not None:
        rules.add(Rule.DERIVED_TABLES)
    if facts.kind is TableKind.VIEW:
        rules.add(Rule.VIEWS)
    return frozenset(rules)


def _may_be_padding(join: Join, fact: Operand, partner: ItemPartner, origin: ColumnOrigin) -> bool:
    """True if a null on either side may be an outer join's padding, rather than a key.

    With rows of the fact left out there would be more such nulls, and `<=>` would match them.
    """
    is_padded = fact.leaf.is_padded_below(join) or partner.leaf.is_padded_below(partner.join)
    # We do not look for padding inside a derived table.
    return is_padded or origin.leaf is not fact.leaf


def by_partner(matches: Iterable[KeyEquality]) -> dict[tuple[TableReference, Partner, int], list[KeyEquality]]:
    """The equalities of one fact with one partner, whose keys are pairs: one row of the partner has both.

    The second equality of a column is in a group of its own, unless it says the same as an earlier one.
    """
    found: dict[tuple[TableReference, Partner, int], list[KeyEquality]] = defaultdict(list)
    times: Counter[tuple[TableReference, Partner, str]] = Counter()
    said: set[tuple[TableReference, Partner, str, str, bool]] = set()
    for match in matches:
        same = (match.origin.reference, match.partner, match.column, match.key, match.null_safe)
        if same in said:
            continue
        said.add(same)
        reference = match.origin.reference
        column = (reference, match.partner, match.column)
        found[reference, match.partner, times[column]].append(match)
        times[column] += 1
    return found
