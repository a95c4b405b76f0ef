"""Tables of many small files whose values show in which order rows are read, and the texts of grouped scans.

The same rows lie twice in files, in another order the second time. A statement whose answer is its rows alone
answers alike on both.
"""

import json
import re
from collections.abc import Iterator

from rewriter import (
    Catalog,
    Column,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.files.file_index import FileIndex
from rewriter.splits.packing import GroupLimits, Packing, SplitHints

FILES, ROWS = 8, 32
# A split for each file, so that each is a task of its own; Spark says so by these settings.
EACH_FILE_A_SPLIT = (
    "SET spark.sql.files.maxPartitionBytes=4194304",
    "SET spark.sql.files.openCostInBytes=4194304",
)
_FILE_BYTES = 4_000

# Values by type, of which a row has any. Sums of the floating-point numbers
# differ by the order of adding, and zeros of both signs are equal. Of the largest decimals two pass the range.
_VALUES = {
    "i": ("int", ("1", "2", "2", "NULL", "-3")),
    "n": ("tinyint", ("1", "0", "NULL", "-1", "2", "2", "3")),
    "b": ("bigint", ("9007199254740993", "1", "-9007199254740993", "5", "NULL")),
    "d": ("double", ("1e16", "1.0", "-1e16", "0.1", "NULL", "3.0", "-0.3")),
    "f": ("float", ("1e8", "1.0", "-1e8", "0.1", "0.25", "NULL", "7.0")),
    "z": ("double", ("0.0D", "-0.0D", "NULL", "-0.0D", "0.0D")),
    "y": ("double", ("double('NaN')", "1.5", "0.0D", "-0.0D", "NULL", "-2.0", "1.5")),
    "m2": ("decimal(10,2)", ("1.25", "-1.25", "0.05", "NULL", "99999999.99")),
    "m38": ("decimal(38,0)", ("9e37", "-9e37", "1", "NULL", "-1")),
    "s": ("string", ("'a'", "'A'", "'b'", "NULL", "''", "'a'", "'b '")),
    "c": ("char(3)", ("'a'", "'b'", "NULL", "'ab'", "'a'")),
    "t": ("timestamp", ("'2026-01-01'", "'2026-01-02 12:00:00'", "NULL", "'2026-01-01'", "'1999-12-31'")),
    "p": ("date", ("'2026-01-01'", "'2026-01-02'", "NULL")),
}
_NESTED = {
    "a": ("array<int>", "array(i, n)"),
    "e": ("array<double>", "array(z, d)"),
    "st": ("struct<z:double,i:double,x:int>", "named_struct('z', z, 'i', d, 'x', i)"),
    "mp": ("map<string,int>", "map('k', i, 'n', int(n))"),
}
# In the second table these are texts, which Spark makes numbers of where a statement adds or compares them so.
_TEXTS = frozenset({"d", "f", "z", "y", "m2", "m38"})
_NO_TEXTS = re.compile(r"double|float|decimal\(\d+,\d+\)")
OTHER = Column("i", "int"), Column("label", "string"), Column("w", "double")
# Texts of which some are equal by their collation, and tables with variants, keep their splits.
COLLATED = Column("i", "int"), Column("s", "string collate UTF8_LCASE")
VARIANT = Column("i", "int"), Column("j", "variant")
PAIRED = Column("i", "int"), Column("pairs", "array<struct<x:int,y:string>>")
VIEW = "SELECT i, d, s FROM many WHERE i IS NOT NULL"


def _columns(*, has_floats: bool) -> tuple[Column, ...]:
    types = {name: type_name for name, (type_name, _) in (*_VALUES.items(), *_NESTED.items())}
    if not has_floats:
        types = {name: _NO_TEXTS.sub("string", type_name) for name, type_name in types.items()}
    return Column("id", "bigint"), *(Column(name, type_name) for name, type_name in types.items())


def _value(name: str, number: str, *, has_floats: bool) -> str:
    """The expression of a column's value in the row of a number."""
    type_name, found = _VALUES[name]
    chosen = f"element_at(array({', '.join(found)}), pmod(hash({number}, '{name}'), {len(found)}) + 1)"
    value = f"CAST({chosen} AS {type_name})"
    return f"{value} AS {name}" if has_floats or name not in _TEXTS else f"CAST({value} AS STRING) AS {name}"


def spark_statements(*, reordered: bool) -> Iterator[str]:
    """The statements that make the tables, with the rows of each in one order or the other."""
    number = f"pmod(id * 11 + 3, {ROWS})" if reordered else "id"
    nested = ", ".join(f"{text} AS {name}" for name, (_, text) in _NESTED.items())
    for table, has_floats in (("many", True), ("texts", False)):
        values = ", ".join(_value(name, number, has_floats=has_floats) for name in _VALUES)
        rows = f"SELECT {number} AS id, {values} FROM range(0, {ROWS}, 1, {FILES})"
        yield f"CREATE TABLE {table} USING parquet AS SELECT *, {nested} FROM ({rows})"
    few = f"range(0, 6, 1, 1) ORDER BY {'id DESC' if reordered else 'id'}"
    yield (
        "CREATE TABLE other USING parquet AS SELECT int(id % 4) AS i, concat('l', id % 3) AS label,"
        f" element_at(array(1e16, 0.1D, -1e16, -0.0D), int(id % 4) + 1) AS w FROM {few}"
    )


def _table(columns: tuple[Column, ...], files: int = FILES) -> TableFacts:
    return TableFacts(columns, indexed_columns=("i",), size_bytes=_FILE_BYTES * files)


_CATALOG: Catalog = {
    TableName(("unknown",)): None,
    TableName(("parquet", "/data")): None,
    TableName(("many",)): _table(_columns(has_floats=True)),
    TableName(("texts",)): _table(_columns(has_floats=False)),
    TableName(("other",)): _table(OTHER, 1),
    TableName(("collated",)): _table(COLLATED),
    TableName(("variants",)): _table(VARIANT),
    TableName(("paired",)): _table(PAIRED),
    TableName(("spark_catalog", "default", "many")): _table(_columns(has_floats=True)),
    TableName(("seen",)): TableFacts(
        (Column("i", "int"), Column("d", "double"), Column("s", "string")),
        kind=TableKind.VIEW,
        view=ViewText(VIEW, ("spark_catalog", "default"), ("i", "d", "s")),
    ),
}
_BOUNDS = json.dumps({"i": {"type": "int", "low": "-3", "high": "3", "nulls": 1}})
_INDEX = FileIndex.of_rows(
    ((f"file:/m/{number}", _FILE_BYTES, 7, ROWS // FILES, _BOUNDS, None) for number in range(FILES)), {"i": "int"}
)
_PACKING = Packing(slots=2, split_bytes_max=1 << 22, open_cost_bytes=1 << 22, has_fixed_slots=True)
_LIMITS = RewriteLimits(has_file_index=True, has_small_files=True)
_OF_SMALL_FILES = tuple(TableName((name,)) for name in ("many", "texts", "collated", "variants", "paired"))
# A hint pays where two splits are saved.
_GROUP_LIMITS = GroupLimits(splits_saved_min=2)
_CHARS_MAX = 100_000


def grouped_text(sql: str, splits: int = 2) -> str | None:
    """The statement with its scans in so many splits each; None where nothing is grouped."""
    statement = parse(sql, chars_max=_CHARS_MAX, has_file_index=True, has_small_files=True)
    if isinstance(statement, SkipReason):
        return None
    found = plan(statement, _CATALOG, _LIMITS)
    hints = SplitHints(dict.fromkeys(_OF_SMALL_FILES, _PACKING), _GROUP_LIMITS)
    result = apply(found, {}, _LIMITS, files=dict.fromkeys(_OF_SMALL_FILES, _INDEX), split_hints=hints)
    if not any(scan.is_grouped for scan in result.scans):
        return None
    return result.text.replace("COALESCE(2)", f"COALESCE({splits})")
