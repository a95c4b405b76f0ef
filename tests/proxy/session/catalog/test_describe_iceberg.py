"""Reading what Spark says of Iceberg tables."""

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT, described

from proxy.session.catalog.describe import read_description
from proxy.session.table_lookup import _as_named
from rewriter import TableFacts, TableName
from rewriter.catalog.table_facts import IcebergFacts

COLUMNS = ("k", "int"), ("s", "string"), ("x", "double"), ("p", "date")
TRANSFORMS = ("# Partitioning", ""), ("Part 0", "bucket(8, k)"), ("Part 1", "months(p)")
BY_COLUMNS = ("# Partition Information", ""), ("# col_name", "data_type"), ("k", "int")


def read(
    name: str = "ice.db.f", *, partitioning: tuple[tuple[str, str], ...] = (), properties: str = ""
) -> TableFacts:
    facts = read_description(described(name, *COLUMNS, partitioning=partitioning, properties=properties))
    assert facts is not None
    return facts


def test_an_iceberg_table_says_its_snapshot_and_its_transforms() -> None:
    facts = read(partitioning=TRANSFORMS)
    assert facts.iceberg == IcebergFacts(DAYS_SNAPSHOT, ("bucket(8, k)", "months(p)"))
    assert facts.full_name == TableName(("ice", "db", "f"))
    assert facts.size_bytes == 2_800


@pytest.mark.parametrize(
    ("order", "column"),
    [
        ("sort-order=K DESC NULLS LAST, s ASC NULLS FIRST", "k"),
        ("sort-order=bucket(8, k) ASC NULLS FIRST, s ASC NULLS FIRST", None),
        ("write.sort-order=k ASC NULLS FIRST", None),
        ("owner=ann", None),
    ],
)
def test_writers_sort_by_the_first_column_of_the_tables_order(order: str, column: str | None) -> None:
    facts = read(properties=f"current-snapshot-id=5,format=iceberg/parquet,format-version=2,{order},z=1")
    assert facts.iceberg == IcebergFacts(5, sorted_by=column)


@pytest.mark.parametrize(
    ("told", "may_hold_orc"),
    [
        ("format=iceberg/orc,format-version=2", True),
        ("format=iceberg/parquet,format-version=2", False),
        ("format=iceberg/avro,format-version=2", False),
        # Of a table that took over the files of another one.
        ('format=iceberg/parquet,format-version=2,schema.name-mapping.default=[ { "field-id" : 1 } ]', True),
    ],
)
def test_the_format_of_files_is_among_the_properties(told: str, *, may_hold_orc: bool) -> None:
    facts = read(properties=f"current-snapshot-id=5,{told},z=1")
    assert facts.iceberg == IcebergFacts(5, may_hold_orc=may_hold_orc)


def test_files_are_skipped_by_all_columns_that_can_have_keys() -> None:
    assert read().indexed_columns == ("k", "s", "p")


def test_a_table_that_is_partitioned_by_columns_alone_has_no_partitions_to_list() -> None:
    facts = read(partitioning=BY_COLUMNS)
    assert facts.partition_columns == ()
    assert facts.iceberg == IcebergFacts(DAYS_SNAPSHOT, ("k",))


@pytest.mark.parametrize(
    "properties",
    [
        "current-snapshot-id=none,format=iceberg/parquet,format-version=2",
        "format=iceberg/parquet,format-version=2",
    ],
)
def test_a_table_into_which_nothing_was_written_has_no_snapshot(properties: str) -> None:
    assert read(properties=properties).iceberg == IcebergFacts(None)


def test_a_metadata_table_is_not_taken_for_one_with_data() -> None:
    facts = read("ice.db.f.files", properties=f"current-snapshot-id={DAYS_SNAPSHOT},format=iceberg/parquet")
    assert facts.iceberg is None
    assert facts.indexed_columns == ()


@pytest.mark.parametrize("selector", ["branch_audit", "tag_year", f"snapshot_id_{DAYS_SNAPSHOT}"])
def test_a_branch_or_tag_is_not_taken_for_the_table_that_it_is_of(selector: str) -> None:
    facts = _as_named(read(), TableName(("db", "f", selector)))
    assert facts.iceberg is None
    assert facts.indexed_columns == ()


@pytest.mark.parametrize("name", [("f",), ("db", "F"), ("ice", "db", "f")])
def test_a_table_is_what_its_name_says_however_it_is_qualified(name: tuple[str, ...]) -> None:
    assert _as_named(read(), TableName(name)) == read()


def test_transforms_of_another_provider_are_not_understood() -> None:
    answer = described("lake.db.f", *COLUMNS, partitioning=TRANSFORMS)
    other = type(answer)(
        answer.columns, tuple(tuple("delta" if v == "iceberg" else v for v in row) for row in answer.rows), 0.1
    )
    assert read_description(other) is None
