"""Spark SQL to DuckDB SQL, where sqlglot's own translation would not mean the same."""

from collections.abc import Iterator
from functools import lru_cache

from duckdb import DuckDBPyConnection
from sqlglot import ErrorLevel, exp, parse_one
from star_tables import Schema

from rewriter.sql.statement import parse_any

# Spark's names of the types, and null as a key as Spark orders it.
MACRO = """
    CREATE MACRO spark_typeof(value) AS CASE typeof(value)
        WHEN 'VARCHAR' THEN 'string' WHEN 'INTEGER' THEN 'int' ELSE lower(typeof(value)) END
"""


def prepare(connection: DuckDBPyConnection) -> None:
    """Define what translated text calls, and what makes answers repeatable."""
    _ = connection.execute(MACRO)
    # One thread: the tables are tiny, and several sieves run side by side.
    _ = connection.execute("SET threads = 1")


@lru_cache(maxsize=4_096)  # The small scopes ask one text of many tables.
def to_duckdb(sql: str, schema: Schema) -> str:
    """The statement in DuckDB's words. Raises SqlglotError."""
    statement = parse_any(sql)
    # Names that are words of SQL, as `FROM.x`, are known as names to the rewriter alone.
    tree = parse_one(sql, read="spark") if statement is None else statement.tree.copy()
    for node in list(tree.find_all(exp.Typeof, exp.Cast, exp.EQ, exp.NullSafeEQ, exp.In)):
        if isinstance(node, exp.Typeof):
            _ = node.replace(exp.func("spark_typeof", node.this))
        elif isinstance(node, exp.Cast):
            _decode_hex(node)
            _negate_within(node)
        else:
            _cast_as_spark_does(node, schema)
    return tree.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)


def _decode_hex(cast: exp.Cast) -> None:
    """CAST(X'..' AS STRING): DuckDB would write the bytes out as escapes."""
    if isinstance(cast.this, exp.HexString):
        _ = cast.replace(exp.Literal.string(bytes.fromhex(cast.this.name).decode()))


def _negate_within(cast: exp.Cast) -> None:
    """-128Y is one literal to Spark; sqlglot reads -CAST(128 AS TINYINT), and 128 is no TINYINT."""
    if isinstance(cast.parent, exp.Neg) and isinstance(cast.this, exp.Literal):
        negative = exp.cast(exp.Neg(this=cast.this.copy()), cast.to.copy())
        _ = cast.parent.replace(negative)


def _cast_as_spark_does(node: exp.Expr, schema: Schema) -> None:
    """`string = int` compares numbers and `string IN (int)` strings, with ANSI mode off; bad numbers are null."""
    if isinstance(node, exp.In):
        members = node.expressions
        if _type_of(node.this, schema) == "string" and members and all(map(_is_number, members)):
            node.set("expressions", [exp.cast(member, "text") for member in members])
        return
    sides = node.this, node.expression
    types = [_type_of(side, schema) for side in sides]
    for side, own, other in zip(sides, types, reversed(types), strict=True):
        if own == "string" and other not in {None, "string"}:
            _ = side.replace(exp.TryCast(this=side.copy(), to=exp.DataType.build(other, dialect="spark")))


def _is_number(node: exp.Expr) -> bool:
    while isinstance(node, exp.Cast | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string


def _type_of(node: exp.Expr, schema: Schema) -> str | None:
    """The type of a column of a table that a FROM in reach names, or None where that is not certain."""
    if not isinstance(node, exp.Column):
        return None
    types = {
        column.type_name
        for alias, table in _tables_in_reach(node)
        if not node.table or alias.lower() == node.table.lower()
        for name, facts in schema
        if name == table.name.lower() and (column := facts.column(node.name)) is not None
    }
    return types.pop() if len(types) == 1 else None


def _tables_in_reach(node: exp.Expr) -> Iterator[tuple[str, exp.Table]]:
    """Tables and what the block calls them; those within a derived table go by its name."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        for source in (select.args.get("from_"), *(select.args.get("joins") or [])):
            for table in source.find_all(exp.Table) if source is not None else ():
                yield _name_within(select, table), table
        select = select.find_ancestor(exp.Select)


def _name_within(select: exp.Select, table: exp.Table) -> str:
    name, node = table.alias_or_name, table.parent
    while node is not None and node is not select:
        if isinstance(node, exp.Subquery) and node.alias:
            name = node.alias
        node = node.parent
    return name
