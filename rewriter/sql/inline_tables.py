"""Inline tables in a FROM: `VALUES ('a', 1), ('b', 2) AS t(k, n)`, with or without parentheses around the rows.

Spark takes a row that is a struct for several columns, so cells are literals alone, which are one column for
certain.
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
class InlineTable:
    """The place of an inline table with its alias, and of its rows, in tokens of a statement."""

    start: int
    stop: int
    rows: slice

    def text(self, statement: Statement) -> str:
        """The inline table with its alias, as the client wrote it."""
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


def located_inline_table(statement: Statement, values: exp.Expr) -> InlineTable | None:
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
    place = InlineTable(start, end + 1, rows)
    found = parse_any(f"SELECT * FROM {place.text(statement)}")
    is_proven = (
        found is not None and isinstance(found.tree, exp.Select) and found.tree.args["from_"].this == values
    )
    return place if is_proven else None


def _is_cell(cell: exp.Expr) -> bool:
    while isinstance(cell, exp.Neg | exp.Cast):
        cell = cell.this
    return isinstance(cell, _CELLS)
