"""Time travel: `t VERSION AS OF 7` reads a table as it was, with the columns that it had then.

Spark's grammar (temporalClause in SqlBaseParser.g4) has the version right behind the name, before options, samples
and the alias: `[FOR] VERSION AS OF` an integer or a string, `[FOR] TIMESTAMP AS OF` any expression without
columns.
"""

from __future__ import annotations

import re

from sqlglot import TokenType, exp

from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import UNCERTAIN_VERSION

# Versions that are understood: an integer, the name of a branch or a tag, a moment with its date. Spark reads a
# time without a date as one of today, and a computed version may differ when it is read again.
_INTEGER = re.compile(r"[0-9]{1,19}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]{1,20})?")

# `VERSION AS OF 7`, or with FOR before it.
_WORDS = 4
_LITERALS = frozenset({TokenType.NUMBER, TokenType.STRING})


def version_of(table: exp.Expr) -> str:
    """The version that a table's reference names, as Spark SQL in one spelling; empty if it names none."""
    version = table.args.get("version")
    if version is None:
        return ""
    value = version.expression
    if version.args.get("kind") != "AS OF" or not isinstance(value, exp.Literal):
        return UNCERTAIN_VERSION
    allowed = (_NAME if version.name == "VERSION" else _MOMENT) if value.is_string else _INTEGER
    if not allowed.fullmatch(value.name):
        return UNCERTAIN_VERSION
    return f"{version.name} AS OF '{value.name}'" if value.is_string else f"{version.name} AS OF {value.name}"


def version_tokens(statement: Statement, table: exp.Expr) -> range:
    """The indexes of the tokens of a table's version; none if it has none, or if its place is not certain."""
    start = table.this.meta.get("start") if isinstance(table.this, exp.Identifier) else None
    name = statement.token_at(start) if start is not None else None
    if name is None or version_of(table) in {"", UNCERTAIN_VERSION}:
        return range(0)
    behind = statement.tokens[name + 1 : name + 2]
    has_for = bool(behind) and behind[0].token_type is TokenType.FOR
    stop = name + 1 + _WORDS + has_for
    literal = statement.tokens[stop - 1] if stop <= len(statement.tokens) else None
    if (
        literal is None
        or literal.token_type not in _LITERALS
        or literal.text != table.args["version"].expression.name
    ):
        return range(0)
    return range(name + 1, stop)


def version_starts(statement: Statement, tree: exp.Expr) -> set[int]:
    """The offsets of the versions' tokens in the text, for all tables in a tree of the statement."""
    found = (version_tokens(statement, table) for table in tree.find_all(exp.Table))
    return {statement.tokens[index].start for tokens in found for index in tokens}
