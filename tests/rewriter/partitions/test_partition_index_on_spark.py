"""The index against Spark: the names that it lists, the order of the values, and what conditions let through."""

import pytest
from pyhive import hive

from demo.hive import run
from rewriter.domains.literals import Key, literal
from rewriter.partitions.filter_text import read_filter
from rewriter.partitions.filter_tree import And, Compare, In, IsNull, Like, Operator, Or, PartitionFilter
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import PartitionKeys

# Derby takes texts for equal that differ in blanks at the end alone, so no two of these do.
_TEXTS = (
    *"a ab abc B b 01 1 a/b a=b 100% a%2Fb a_c null é 中 \uffee 😀 it's back\\slash {x} [y] a:b?c*d#e + ~".split(),
    *("z ", 'say "so"', "tab\there", "line\nend", "\x01"),
)
_VALUES: dict[str, tuple[Key | None, ...]] = {
    "tinyint": (-128, -1, 0, 1, 127, None),
    "int": (-2147483648, -1, 0, 7, 2147483647, None),
    "bigint": (-(1 << 63), -1, 0, 7, (1 << 63) - 1, None),
    "boolean": (True, False, None),
    "date": ("0001-01-01", "1582-10-15", "1969-12-31", "1970-01-01", "2026-11-20", "9999-12-31", None),
    "decimal(5,2)": ("-999.99", "-0.01", "0.00", "1.50", "10.00", "999.99", None),
    "string": (*_TEXTS, None),
}


# Three values of each type as people write them, ascending.
_WRITTEN = {
    "tinyint": ("-128", "0Y", "'127'"),
    "int": ("-1", "7", "2147483647"),
    "bigint": ("'-1'", "7", "9223372036854775807"),
    "boolean": ("false", "false", "true"),
    "date": ("'0001-01-01'", "DATE'1970-01-01'", "'2026-11-20'"),
    "decimal(5,2)": ("-0.01", "1.50", "10"),
    "string": ("'01'", "'ab'", "'z '"),
}


def conditions(type_name: str) -> list[tuple[str, PartitionFilter]]:
    """Conditions as Spark reads them and as the index does."""
    values = [value for value in _VALUES[type_name] if value is not None]
    middle, last = values[len(values) // 2], values[-1]
    found: list[tuple[str, PartitionFilter]] = [
        (f"k {operator.value} {literal(type_name, middle)}", Compare("k", operator, middle))
        for operator in Operator
    ]
    members = f"{literal(type_name, middle)}, {literal(type_name, last)}"
    found += [
        (f"k IN ({members}, NULL)", In("k", (middle, last, None))),
        ("k IS NULL", IsNull("k")),
        ("k IS NOT NULL", IsNull("k", negated=True)),
    ]
    both = [found[2], found[5], found[6]]
    found.append((" AND ".join(f"({sql})" for sql, _ in both), And(tuple(node for _, node in both))))
    found.append((" OR ".join(f"({sql})" for sql, _ in both), Or(tuple(node for _, node in both))))
    if type_name == "string":
        patterns = ("a%", "ab", "%b", "a_c", "_", "%!%%", "a!_c", "%\n%", "a%c%", "%")
        found += [(f"k LIKE {literal('string', p)} ESCAPE '!'", Like("k", p, "!")) for p in patterns]
    return found + [(sql, read_filter(sql, PartitionKeys(("k",), (type_name,)))) for sql in texts(type_name)]


def texts(type_name: str) -> list[str]:
    """Conditions that the index reads from the text that Spark gets."""
    low, middle, high = _WRITTEN[type_name]
    found = [
        *(f"{word} k {operator.value} {middle}" for word in ("", "NOT") for operator in Operator),
        *(f"{middle} {operator.value} k" for operator in Operator),
        f"k BETWEEN {low} AND {middle}",
        f"k NOT BETWEEN {middle} AND {high}",
        f"NOT (k > {low} AND (k < {high} OR k IS NULL))",
        f"NOT (k <=> {middle} OR k = {low})",
        f"k NOT IN ({low}, {high})",
        f"k NOT IN ({low}, NULL)",
        f"NOT (k IN ({low}) AND k <> {high})",
        "k <=> NULL",
        "NOT k <=> NULL",
        "NOT k IS NULL",
        "k = NULL OR NOT k > NULL",
        "NOT (TRUE AND k IS NOT NULL)",
    ]
    if type_name == "string":
        patterns = ("a%", "ab", "%b", "a_c", "_", "%")
        found += [f"k NOT LIKE '{pattern}'" for pattern in patterns]
        found += [f"NOT k LIKE '{pattern}' ESCAPE '!'" for pattern in (*patterns, "a!_c")]
        found += [f"NOT k NOT LIKE '{pattern}'" for pattern in patterns]
    return found


@pytest.mark.parametrize("type_name", _VALUES)
def test_the_index_reads_orders_and_filters_partitions_as_spark_does(
    direct: hive.Connection, type_name: str
) -> None:
    table = f"indexed_{type_name.partition('(')[0]}"
    values = ", ".join(f"(1, {_written(type_name, value)})" for value in _VALUES[type_name])
    run(direct, f"CREATE TABLE {table} (x INT, k {type_name}) USING parquet PARTITIONED BY (k)")
    run(direct, f"INSERT INTO {table} VALUES {values}")
    specs = [name for (name,) in run(direct, f"SHOW PARTITIONS {table}")]
    index = PartitionIndex.of(("k",), (type_name,), specs)
    assert not index.unreadable
    asked = conditions(type_name)
    columns = ", ".join(f"({sql}) AS c{position}" for position, (sql, _) in enumerate(asked))
    rows = run(direct, f"SELECT DISTINCT k, {columns} FROM {table} ORDER BY k NULLS FIRST")
    assert [shown(value) for value, _ in index.counts("k")] == [shown(row[0]) for row in rows]
    for position, (sql, condition) in enumerate(asked, start=1):
        expected = [shown(row[0]) for row in rows if row[position]]
        entries = [index.keys.entry(spec) for spec in index.matching(condition)]
        assert [shown(index.keys.decode(entry)[0]) for entry in entries] == expected, sql


def _written(type_name: str, value: Key | None) -> str:
    """A partition's value in SQL. Tables hold days of which no key is made, those on which calendars differ."""
    return f"DATE '{value}'" if type_name == "date" and value else literal(type_name, value)


def shown(value: object) -> str:
    """A value as text: PyHive makes numbers of decimals."""
    return str(value)
