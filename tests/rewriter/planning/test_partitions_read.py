"""The partitions that the filters of a statement leave of each table, and where these do not tell."""

import pytest

from rewriter import Column, TableFacts, TableKind, TableName, ViewText
from rewriter.catalog.table_facts import DeltaFacts, IcebergFacts
from rewriter.planning.partitions_read import StatementReads, partitions_read
from rewriter.sql.statement import parse_to_read

COLUMNS = (Column("v", "int"), Column("ds", "string"))
F = TableFacts(COLUMNS, ("ds",), full_name=TableName(("c", "d", "f")))
D = TableFacts((Column("ds", "string"), Column("g", "int")))
V = TableFacts(COLUMNS, kind=TableKind.VIEW, view=ViewText("SELECT * FROM d.f", ("c", "d"), ("v", "ds")))
TIMED = (*COLUMNS, Column("at", "timestamp"))
DELTA = TableFacts(COLUMNS, delta=DeltaFacts(("ds",)))
ICEBERG = TableFacts(TIMED, iceberg=IcebergFacts(1, ("ds", "days(at)", "bucket(8, v)")))
CATALOG: dict[TableName, TableFacts | None] = {
    TableName((name,)): facts for name, facts in {"f": F, "d": D, "w": V, "x": DELTA, "i": ICEBERG}.items()
}


def reads(sql: str) -> StatementReads | None:
    statement, catalog = parse_to_read(sql, chars_max=10_000), dict(CATALOG)
    if statement is None:
        return None
    while (found := partitions_read(statement, catalog)).missing:
        catalog |= {name: F if name.parts[-1].lower() == "f" else None for name in found.missing}
    return found


@pytest.mark.parametrize(
    ("sql", "values", "is_exact"),
    [
        ("SELECT * FROM f", None, True),
        ("SELECT * FROM F", None, True),
        ("SELECT * FROM f WHERE ds = 'a'", "a", True),
        ("SELECT * FROM f WHERE v = 1 AND ds = 'a'", "a", True),
        ("SELECT * FROM f WHERE ds = 'a' AND length(ds) > 0", "a", False),
        ("SELECT * FROM f WHERE ds > current_date()", None, False),
        ("SELECT * FROM f WHERE 1 = 0", None, False),
        ("SELECT * FROM f LIMIT 0", None, False),
        ("SELECT * FROM f LIMIT 1", None, True),
        ("SELECT * FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1", None, True),
        ("SELECT * FROM f JOIN d ON f.ds = d.ds WHERE d.ds = 'a'", None, False),
        ("SELECT * FROM f WHERE ds IN (SELECT ds FROM d)", None, True),
        ("SELECT * FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.ds = f.ds)", None, True),
        ("SELECT * FROM f WHERE ds = (SELECT 'a')", None, False),
        ("SELECT * FROM f, (SELECT 'a' AS lo) p WHERE ds >= p.lo", None, False),
        ("WITH p AS (SELECT 'a' AS lo) SELECT * FROM f, p WHERE ds >= p.lo", None, False),
        ("SELECT ds FROM f GROUP BY ds HAVING ds = 'a'", None, False),
        ("SELECT * FROM (SELECT * FROM f) t WHERE ds = 'a'", "a", False),
        ("SELECT * FROM (SELECT * FROM f LIMIT 3) t WHERE ds = 'a'", None, False),
        ("SELECT * FROM f TABLESAMPLE (10 PERCENT)", None, False),
        ("SELECT * FROM f UNION ALL SELECT * FROM d", None, True),
        ("SELECT * FROM d LEFT JOIN f ON f.v = d.g AND f.ds = 'a'", "a", True),
        ("SELECT * FROM f LEFT JOIN d ON f.v = d.g AND f.ds = 'a'", None, False),
        ("INSERT INTO d SELECT * FROM f", None, True),
        ("CREATE TABLE x AS SELECT * FROM f WHERE ds = 'a'", "a", True),
        ("SELECT * FROM w WHERE ds = 'a'", None, False),
        ("MERGE INTO f USING d ON f.ds = d.ds WHEN MATCHED THEN DELETE", None, False),
    ],
)
def test_filters_with_literals_tell_the_partitions(sql: str, values: str | None, *, is_exact: bool) -> None:
    found = reads(sql)
    assert found is not None
    (read,) = [one for one in found.tables if one.facts == F]
    assert read.is_exact is is_exact
    if values is None:
        assert read.within.is_all
    else:
        (box,) = read.within.boxes
        ((column, domain),) = box.domains
        assert (column, [one.low and one.low.value for one in domain.intervals]) == ("ds", [values])


@pytest.mark.parametrize(
    ("sql", "columns", "is_exact"),
    [
        ("SELECT * FROM x", [], True),
        ("SELECT * FROM x WHERE ds = 'a' AND v = 1", ["ds"], True),
        ("SELECT * FROM x WHERE v = 1", [], True),
        ("SELECT * FROM i WHERE v = 1 AND ds > 'a'", ["ds", "v"], True),
        ("SELECT * FROM i WHERE at > TIMESTAMP '2026-10-01 00:00:00'", ["a time"], False),
        ("SELECT * FROM i WHERE at BETWEEN '2026-10-01' AND current_date()", ["a time"], False),
        ("SELECT * FROM i WHERE year(at) = 2026 OR at > '2027'", [], False),
        ("SELECT * FROM i LEFT JOIN d ON i.at > '2027'", [], False),
        ("SELECT * FROM i WHERE at <> '2026-10-01'", [], False),
        ("SELECT * FROM i WHERE at = at", [], False),
        ("SELECT * FROM i WHERE at IS NOT NULL", [], False),
    ],
)
def test_of_other_formats_columns_tell_that_they_keep_partitions_by(
    sql: str, columns: list[str], *, is_exact: bool
) -> None:
    found = reads(sql)
    assert found is not None
    (read,) = [one for one in found.tables if one.facts in (DELTA, ICEBERG)]
    names = [name for box in read.within.boxes for name, _ in box.domains]
    assert ([*names, *(["a time"] if read.is_within_times else [])], read.is_exact) == (columns, is_exact)


@pytest.mark.parametrize(
    "sql",
    ["TABLE f", "SELECT * FROM IDENTIFIER('f')", "BEGIN SELECT 1; END", "SELECT 1; SELECT 2", "SELECT '${x}'"],
)
def test_a_text_that_is_not_certain_is_not_read(sql: str) -> None:
    assert reads(sql) is None


@pytest.mark.parametrize("sql", ["SELECT * FROM nowhere", "SELECT mine(1) FROM f"])
def test_tables_that_no_name_tells_may_be_read_besides(sql: str) -> None:
    found = reads(sql)
    assert found is not None
    assert not found.is_whole


def test_a_view_reads_nothing_as_it_is_made() -> None:
    assert reads("CREATE TEMPORARY VIEW x AS SELECT * FROM f") == StatementReads()
