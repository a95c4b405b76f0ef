"""What names denote where Spark could take them for something else: structs, and names that differ in case."""

from rewriter import Column, Limits, Plan, SkipReason, Statement, TableFacts, TableName, plan, read

FACT = TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",))
DIMENSION = TableFacts((Column("ds", "string"), Column("g", "int")))
NESTED = TableFacts((Column("k", "string"), Column("f", "struct<ds:string>"), Column("g", "int")))
CATALOG = {TableName(("f",)): FACT, TableName(("d",)): DIMENSION, TableName(("nested",)): NESTED}
LIMITS = Limits()


def planned(sql: str) -> Plan:
    statement = read(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    return plan(statement, CATALOG, LIMITS)


def reasons(sql: str) -> list[SkipReason | None]:
    """Why each reference to the fact is left alone; None for one that is not."""
    return [scan.skip for scan in planned(sql).scans if scan.reference.name == TableName(("f",))]


def test_a_field_of_a_column_in_a_subquery_comes_before_a_table_of_the_same_name_outside() -> None:
    exists = "SELECT f.id FROM f WHERE EXISTS (SELECT 1 FROM {} r WHERE r.{} = f.ds AND r.g = 1)"
    assert reasons(exists.format("nested", "k")) == [SkipReason.NO_EQUALITY]
    assert reasons(exists.format("d", "ds")) == [None]
