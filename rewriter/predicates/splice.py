"""Insertions into the client's own text, and the proof that nothing else changed.

A predicate goes into a scan, or before a conjunct of an ON or WHERE where the scan must stay in view.

A hint alone may go into a scan too: then nothing is filtered, and there is no predicate to prove.

The proof has two parts. With a placeholder for each predicate the text must parse to the original's tree plus the
narrowed scans and the further conjuncts. And each predicate must be one condition by its tokens, whatever stands
around it: so a text that parses with the placeholder parses with the predicate in its place. Parsing thousands of
literals would take half a second. A check is proven likewise: parentheses enclose it, and none of its tokens
closes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, TypeAlias

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.statement import Statement, parse_tree

# The placeholder for any condition in a scan, and the one before a conjunct, which is found again by its place.
_PLACEHOLDER = "TRUE"
_PLACEHOLDER_BEFORE_CONJUNCT = "`placeholder`"

_SCAN = frozenset({"expressions", "from_"})

# Proofs that are kept with a statement: the set of its narrowed scans seldom changes.
_PROVEN_MAX = 16

# All tokens of predicates. None of them ends a statement, a clause or a parenthesis around the predicate.
_PREDICATE_TOKENS = frozenset(
    {
        *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DASH, TokenType.DCOLON),
        *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.BETWEEN, TokenType.IS),
        *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
        *(TokenType.IDENTIFIER, TokenType.STRING, TokenType.HEX_STRING, TokenType.NUMBER),
        *(TokenType.TRUE, TokenType.FALSE, TokenType.NULL),
        # Types of literals and of CAST (.. AS ..), and the names of functions.
        *(TokenType.ALIAS, TokenType.TINYINT, TokenType.SMALLINT, TokenType.BIGINT, TokenType.DECIMAL),
        *(
            TokenType.DATE,
            TokenType.TIMESTAMPTZ,
            TokenType.TIMESTAMPNTZ,
            TokenType.TEXT,
            TokenType.ARRAY,
            TokenType.VAR,
        ),
        *(TokenType.CURRENT_CATALOG, TokenType.CURRENT_DATE, TokenType.CURRENT_SCHEMA),
        *(TokenType.CURRENT_USER, TokenType.SESSION_USER),
        # `_metadata.file_path`
        TokenType.DOT,
    }
)


@dataclass(frozen=True)
class Narrowing:
    """A table reference, by the bounds of its name in the text, and the filter that goes around it.

    `alias` is the text of the table's name in the block, or None if the client wrote an alias, which then follows
    the narrowed scan by itself.
    """

    start: int
    stop: int
    alias: str | None
    # None for a hint alone.
    predicate: str | None
    # The number of splits to read it in; None for as many as Spark makes (`rewriter.splits.packing`).
    splits: int | None = None

    @property
    def before(self) -> str:
        """The text that is inserted in front of the table's name."""
        hint = f"/*+ COALESCE({self.splits:d}) */ " if self.splits is not None else ""
        return f"(SELECT {hint}* FROM "

    @property
    def after(self) -> str:
        """The text that is inserted behind the table's name."""
        alias = f" AS {self.alias}" if self.alias is not None else ""
        where = f" WHERE {self.predicate}" if self.predicate is not None else ""
        return f"{where}){alias}"


@dataclass(frozen=True)
class _AtOffset:
    """Text that is inserted at an offset, and encloses none of the client's text."""

    start: int

    @property
    def stop(self) -> int:
        """The end of the client's text that it encloses: none, so this is the start."""
        return self.start


@dataclass(frozen=True)
class FurtherConjunct(_AtOffset):
    """A predicate in front of a conjunct that starts at the offset; it names columns by their table."""

    before: ClassVar[str] = ""

    predicate: str

    @property
    def after(self) -> str:
        """The text that is inserted at the offset."""
        return f"{self.predicate} AND "


@dataclass(frozen=True)
class CheckClause(_AtOffset):
    """A clause in front of the clause of a MERGE that starts at the offset (`rewriter.semijoins.merge_check`)."""

    before: ClassVar[str] = "WHEN NOT MATCHED AND "
    # It filters nothing.
    predicate: ClassVar[None] = None

    # An expression in parentheses that never holds, and raises where the statement must fail.
    check: str
    # The text behind THEN, the same as in the next clause.
    action: str

    @property
    def after(self) -> str:
        """The check, and the text behind it."""
        return f"{self.check} THEN {self.action} "


Insertion: TypeAlias = Narrowing | FurtherConjunct | CheckClause


def rewritten_text(statement: Statement, narrowings: Sequence[Insertion]) -> str | None:
    """The statement's text with every narrowing inserted, or None if the proof fails."""
    ordered = sorted(narrowings, key=lambda narrowing: narrowing.start)
    if any(left.stop > right.start for left, right in pairwise(ordered)):
        return None
    predicates = {narrowing.predicate for narrowing in ordered if narrowing.predicate is not None}
    if not all(map(is_one_condition, predicates)):
        return None
    if not all(is_enclosed(narrowing.check) for narrowing in ordered if isinstance(narrowing, CheckClause)):
        return None
    outline = tuple(_outline(narrowing) for narrowing in ordered)
    # Several threads may look at one statement.
    is_proven = statement.proven.get(outline)
    if is_proven is None:
        if len(statement.proven) >= _PROVEN_MAX:
            statement.proven.clear()
        is_proven = _is_original_plus(statement, outline, _inserted(statement, outline))
        statement.proven[outline] = is_proven
    return _inserted(statement, ordered) if is_proven else None


def _outline(narrowing: Insertion) -> Insertion:
    if isinstance(narrowing, CheckClause):
        return replace(narrowing, check=_PLACEHOLDER_BEFORE_CONJUNCT)
    if narrowing.predicate is None:
        return narrowing
    is_scan = isinstance(narrowing, Narrowing)
    return replace(narrowing, predicate=_PLACEHOLDER if is_scan else _PLACEHOLDER_BEFORE_CONJUNCT)


def is_one_condition(predicate: str) -> bool:
    """True if the text is one condition, or several in parentheses joined by AND, wherever it stands.

    >>> is_one_condition("(`k` IN (1)) AND (`l` IS NULL)")
    True
    >>> is_one_condition("(`k` IN (1)) OR `l` IS NULL) AND (1 = 1")
    False
    """
    try:
        tokens = tokenize(predicate)
    except SqlglotError:
        return False
    if any(token.token_type not in _PREDICATE_TOKENS or token.comments for token in tokens):
        return False
    outermost = _outermost([token.token_type for token in tokens])
    if outermost in ([TokenType.TRUE], [TokenType.FALSE]):
        return True
    groups, between = outermost[::2], outermost[1::2]
    return {*groups} == {TokenType.L_PAREN} and {*between} <= {TokenType.AND} and len(outermost) % 2 == 1


def is_enclosed(text: str) -> bool:
    """True if one pair of parentheses encloses the whole text, and it has no semicolon.

    >>> is_enclosed("(SELECT max(k) FROM d)"), is_enclosed("(SELECT 1) OR (TRUE)")
    (True, False)
    """
    try:
        types = [token.token_type for token in tokenize(text)]
    except SqlglotError:
        return False
    return _outermost(types) == [TokenType.L_PAREN] and TokenType.SEMICOLON not in types


def _outermost(types: Sequence[TokenType]) -> list[TokenType]:
    """The tokens outside of all parentheses, each parenthesis as one token; empty if they do not match."""
    found, depth = [], 0
    for type_ in types:
        if depth == 0:
            found.append(type_)
        depth += (type_ is TokenType.L_PAREN) - (type_ is TokenType.R_PAREN)
        if depth < 0:
            return []
    return found if depth == 0 else []


def _inserted(statement: Statement, ordered: Sequence[Insertion]) -> str:
    pieces, copied = [], 0
    for narrowing in ordered:
        name = statement.text[narrowing.start : narrowing.stop]
        pieces += [statement.text[copied : narrowing.start], narrowing.before, name, narrowing.after]
        copied = narrowing.stop
    return "".join([*pieces, statement.text[copied:]])


def _is_original_plus(statement: Statement, ordered: Sequence[Insertion], text: str) -> bool:
    """True if the text, without its insertions, parses to the original's tree.

    Each narrowed scan becomes a plain reference again; each further conjunct and each check's clause is dropped.
    """
    tree = parse_tree(text)
    if tree is None:
        return False
    tables = {_name_start(table): table for table in tree.find_all(exp.Table)}
    has_placeholders = not all(isinstance(one, Narrowing) for one in ordered)
    identifiers = tree.find_all(exp.Identifier) if has_placeholders else ()
    names = {name.meta.get("start"): name for name in identifiers}
    shift = 0
    for narrowing in ordered:
        shift += len(narrowing.before)
        if isinstance(narrowing, Narrowing):
            table = tables.get(narrowing.start + shift)
            is_undone = table is not None and _unwrap(table, narrowing)
        else:
            name = names.get(narrowing.start + shift)
            drop = _drop_clause if isinstance(narrowing, CheckClause) else _drop
            is_undone = name is not None and drop(name)
        if not is_undone:
            return False
        shift += len(narrowing.after)
    return tree == statement.tree


def _drop(placeholder: exp.Identifier) -> bool:
    """Take a placeholder out of the conjunction that it stands in; False if that is not of an ON or WHERE."""
    column = placeholder.parent
    both = column.parent if isinstance(column, exp.Column) and len(column.parts) == 1 else None
    if not isinstance(both, exp.And):
        return False
    around = both.parent
    while isinstance(around, exp.And | exp.Paren):
        around = around.parent
    if not isinstance(around, exp.Where | exp.Join | exp.Merge):
        return False
    both.replace(both.expression if both.this is column else both.this)
    return True


def _drop_clause(placeholder: exp.Identifier) -> bool:
    """Remove the first clause for rows that are not matched; False unless the next one has the same action.

    The condition of the removed clause is the placeholder.
    """
    column = placeholder.parent
    when = column.parent if isinstance(column, exp.Column) and len(column.parts) == 1 else None
    clauses = when.parent if isinstance(when, exp.When) and when.args["condition"] is column else None
    if when is None or clauses is None:
        return False
    listed = clauses.expressions
    first = [one for one in listed if not one.args["matched"]][:2]
    clauses.set("expressions", [one for one in listed if one is not when])
    if len(first) < 2 or first[0] is not when or any(one.args.get("source") for one in first):  # noqa: PLR2004
        return False
    return bool(first[0].args["then"] == first[1].args["then"])


def _name_start(table: exp.Table) -> int | None:
    first = table.args.get("catalog") or table.args.get("db") or table.this
    return first.meta.get("start") if isinstance(first, exp.Identifier) else None


def _is_hint(hint: exp.Expr | None, splits: int | None) -> bool:
    """True if a hint asks for that number of splits and nothing else: hints are comments with any content."""
    if splits is None:
        return hint is None
    return hint == exp.Hint(expressions=[exp.Coalesce(this=exp.Literal.number(splits))])


def _clauses(narrowing: Narrowing) -> frozenset[str]:
    """The clauses of an inserted scan, beside a hint."""
    return _SCAN if narrowing.predicate is None else _SCAN | {"where"}


def _unwrap(table: exp.Table, narrowing: Narrowing) -> bool:
    """Replace `(SELECT * FROM t WHERE p) AS a` by the plain reference, if the reference is in one."""
    select = table.parent.parent if table.parent else None
    scan = select.parent if select else None
    if not isinstance(select, exp.Select) or not isinstance(scan, exp.Subquery):
        return False
    kept = {name for name, value in select.args.items() if value}
    is_star = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
    if kept - {"hint"} != _clauses(narrowing) or not is_star or table.args.get("alias"):
        return False
    if not _is_hint(select.args.get("hint"), narrowing.splits):
        return False
    if narrowing.alias is None:
        table.set("alias", scan.args.get("alias"))
    for name, value in scan.args.items():
        if name not in {"this", "alias"} and value:
            table.set(name, value)
    scan.replace(table)
    return True
