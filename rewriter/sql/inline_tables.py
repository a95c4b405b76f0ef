"""Rows that a FROM reads from no table: inline tables, and `explode` of an array that names no column.

An inline table is `VALUES ('a', 1), ('b', 2) AS t(k, n)`, with or without parentheses around the rows. Spark takes
a row that is a struct for several columns, so cells are literals alone, which are one column for certain.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import TokenType, exp

from rewriter.sql.conditions import closing
from rewriter.sql.statement import Statement, parse_any

# Rows of one inline table. Each is parsed once more to prove its place; a person writes some tens.
_ROWS_MAX = 1_000

_CELLS = (exp.Literal, exp.Null, exp.Boolean, exp.CurrentDate)


@dataclass(frozen=True)
class LocatedRows:
    """The place of an inline table with its alias, or of a generator's call, in tokens of a statement."""

    start: int
    stop: int
    # The rows of the inline table, or the call's arguments.
    values: slice

    def text(self, statement: Statement) -> str:
        """The rows as the client wrote them."""
        return statement.text[statement.tokens[self.start].start : statement.tokens[self.stop - 1].end + 1]


def inline_columns(values: exp.Expr) -> tuple[str, ...] | None:
    """The names of an inline table's columns; None if they are not certain."""
    alias, rows = values.args.get("alias"), values.expressions
    if alias is None or not alias.this or len(rows) > _ROWS_MAX:
        return None
    if any(value for name, value in values.args.items() if name not in {"expressions", "alias"}):
        return None
    widths = {len(row.expressions) if isinstance(row, exp.Tuple) else 0 for row in rows}
    if len(widths) != 1 or 0 in widths or not all(_is_cell(cell) for row in rows for cell in row.expressions):
        return None
    width = widths.pop()
    names = [column.name for column in alias.args.get("columns") or ()]
    if not names:
        return tuple(f"col{number}" for number in range(1, width + 1))
    return tuple(names) if len(names) == width else None


def located_inline_table(statement: Statement, values: exp.Expr) -> LocatedRows | None:
    """The place of an inline table in the statement; None if that is not certain."""
    if inline_columns(values) is None:
        return None
    tokens, named = statement.tokens, values.args["alias"]
    alias = statement.token_at(named.this.meta.get("start", -1))
    first = next((i for i in range((alias or 0) - 1, -1, -1) if tokens[i].token_type is TokenType.VALUES), None)
    if alias is None or first is None:
        return None
    stop = alias - 1 if tokens[alias - 1].token_type is TokenType.ALIAS else alias
    start, rows = first, slice(first + 1, stop)
    if first and tokens[first - 1].token_type is TokenType.L_PAREN and closing(tokens, first - 1) == stop - 1:
        start, rows = first - 1, slice(first + 1, stop - 1)
    end = closing(tokens, alias + 1) if named.args.get("columns") else alias
    if end is None:
        return None
    place = LocatedRows(start, end + 1, rows)
    found = parse_any(f"SELECT * FROM {place.text(statement)}")
    is_proven = (
        found is not None and isinstance(found.tree, exp.Select) and found.tree.args["from_"].this == values
    )
    return place if is_proven else None


def generated_column(node: exp.Expr) -> str | None:
    """The name of the column that `explode` makes of an array.

    The call is a FROM item, `explode(array(1, 7)) AS t(n)`, also behind LATERAL, or it is that of a LATERAL VIEW.
    An array of literals, or a sequence between two, has the same rows beside each row of the other items, as an
    inline table has. The array of a LATERAL VIEW may also read columns of the items before it
    (`read_by_generator`). OUTER is left out: it has a row of null where the array has none.
    """
    alias, called = node.args.get("alias"), node.this
    if not isinstance(node, exp.Lateral | exp.Table) or type(called) is not exp.Explode:
        return None
    is_array = isinstance(called.this, exp.Array | exp.GenerateSeries)
    is_known = bool(node.args.get("view")) if read_by_generator(node) else is_array
    if not is_known or not _is_plain(node):
        return None
    columns = alias.columns if isinstance(alias, exp.TableAlias) and alias.name else ()
    return str(columns[0].name) if len(columns) == 1 else None


def read_by_generator(node: exp.Expr) -> list[exp.Column]:
    """The columns of other items that a generator reads."""
    return list(node.this.find_all(exp.Column)) if isinstance(node, exp.Lateral | exp.Table) else []


def _is_plain(generator: exp.Expr) -> bool:
    is_plain = not any(value for name, value in generator.args.items() if name not in {"this", "alias", "view"})
    return is_plain and generator.find(exp.Query) is None


def located_generator(statement: Statement, node: exp.Expr) -> LocatedRows | None:
    """The place of a generator that has a `generated_column`; None if that is not certain."""
    tokens = statement.tokens
    end = (statement.token_at(node.args["alias"].this.meta.get("start", -1)) or 0) - 1
    end -= end > 0 and tokens[end].token_type is TokenType.ALIAS
    depth = 0
    for first in range(end, 0, -1):
        kind = tokens[first].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth <= 0:
            place = LocatedRows(first - 1, end + 1, slice(first + 1, end))
            found = parse_any(f"SELECT {place.text(statement)}")
            is_proven = found is not None and found.tree.args.get("expressions") == [node.this]
            is_bare = first > 1 and tokens[first - 2].token_type is not TokenType.DOT
            return place if is_proven and is_bare else None
    return None


def _is_cell(cell: exp.Expr) -> bool:
    while isinstance(cell, exp.Neg | exp.Cast):
        cell = cell.this
    return isinstance(cell, _CELLS)
