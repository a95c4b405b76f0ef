"""Insertions into the client's own text, and the proof that nothing else changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from rewriter.statement import Statement, parsed


@dataclass(frozen=True)
class Narrowing:
    """A table reference, by the bounds of its name in the text, and the filter that goes around it.

    `alias` is the text of the name that the block calls the table by, or None where the client wrote an
    alias, which then follows the narrowed scan by itself.
    """

    start: int
    stop: int
    alias: str | None
    predicate: str

    @property
    def before(self) -> str:
        """What is inserted in front of the table's name."""
        return "(SELECT * FROM "

    @property
    def after(self) -> str:
        """What is inserted behind it."""
        alias = f" AS {self.alias}" if self.alias is not None else ""
        return f" WHERE {self.predicate}){alias}"


def narrowed(statement: Statement, narrowings: Sequence[Narrowing]) -> str | None:
    """The text with every narrowing inserted, or None where it does not prove to be just that."""
    ordered = sorted(narrowings, key=lambda narrowing: narrowing.start)
    if any(left.stop > right.start for left, right in pairwise(ordered)):
        return None
    pieces, copied = [], 0
    for narrowing in ordered:
        name = statement.text[narrowing.start : narrowing.stop]
        pieces += [statement.text[copied : narrowing.start], narrowing.before, name, narrowing.after]
        copied = narrowing.stop
    text = "".join([*pieces, statement.text[copied:]])
    return text if _is_original_plus(statement, ordered, text) else None


def _is_original_plus(statement: Statement, ordered: Sequence[Narrowing], text: str) -> bool:
    """Whether the text parses to the original's tree once each narrowed scan is a plain reference again."""
    tree = parsed(text)
    if tree is None:
        return False
    tables = {_name_start(table): table for table in tree.find_all(exp.Table)}
    shift = 0
    for narrowing in ordered:
        shift += len(narrowing.before)
        table = tables.get(narrowing.start + shift)
        if table is None or not _unwrap(table, had_alias=narrowing.alias is None):
            return False
        shift += len(narrowing.after)
    return tree == statement.tree


def _name_start(table: exp.Table) -> int | None:
    first = table.args.get("catalog") or table.args.get("db") or table.this
    return first.meta.get("start") if isinstance(first, exp.Identifier) else None


def _unwrap(table: exp.Table, *, had_alias: bool) -> bool:
    """Put the reference back in the place of `(SELECT * FROM t WHERE p) AS a`, if that is where it stands."""
    select = table.parent.parent if table.parent else None
    scan = select.parent if select else None
    if not isinstance(select, exp.Select) or not isinstance(scan, exp.Subquery):
        return False
    kept = {name for name, value in select.args.items() if value}
    is_star = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
    if kept != {"expressions", "from_", "where"} or not is_star or table.args.get("alias"):
        return False
    if had_alias:
        table.set("alias", scan.args.get("alias"))
    for name, value in scan.args.items():
        if name not in {"this", "alias"} and value:
            table.set(name, value)
    scan.replace(table)
    return True
