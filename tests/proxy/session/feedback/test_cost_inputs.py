"""Whether skipping files by a statement's own filters makes up for narrowing it."""

from dataclasses import dataclass

import pytest

from proxy.session.feedback.cost_gate import Fact
from proxy.session.feedback.cost_inputs import facts_of, makes_up
from rewriter import Catalog, Column, IcebergFacts, RewriteLimits, Statement, TableFacts, TableName, parse, plan
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.files.file_facts import FileFacts
from rewriter.files.file_index import FileSelection

MB = 1_000_000


def selection(skipped: int, kept: int, size_bytes: int, rows: int) -> FileSelection:
    misses = tuple(FileFacts(f"/f/{number}", size_bytes, 0, rows, {}, ()) for number in range(skipped))
    total = skipped + kept
    return FileSelection(misses, kept, kept * size_bytes, total, total * size_bytes, kept_rows=kept * rows)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(selection(23, 2, 80 * MB, 2_000_000), True, id="a frequent value in files of its own"),
        pytest.param(selection(20, 5, 80 * MB, 1_600_000), False, id="a rare value among eight million rows"),
        pytest.param(selection(16, 9, 80 * MB, 1_800_000), False, id="some values among sixteen million rows"),
        pytest.param(selection(17, 1, 110 * MB, 2_800_000), True, id="one key of a sorted table"),
        pytest.param(selection(18, 0, 1 * MB, 50_000), False, id="a few small files"),
        pytest.param(selection(300, 3, 1 * MB, 10_000), True, id="hundreds of small files"),
    ],
)
def test_files_are_skipped_where_that_was_measured_to_save_time(files: FileSelection, expected: bool) -> None:  # noqa: FBT001
    assert makes_up([files]) is expected


def test_what_all_scans_save_is_held_against_the_rows_that_all_leave() -> None:
    one, other = selection(23, 2, 80 * MB, 2_000_000), selection(0, 5, 80 * MB, 1_600_000)
    assert makes_up([one])
    assert not makes_up([one, other])


FACT, SMALL_SIDE = TableName(("f",)), TableName(("d",))
COLUMNS = (Column("id", "int"), Column("k", "int"))


@dataclass(frozen=True)
class Sizes:
    """A session that has the list of the fact's 70 partitions."""

    fact: TableFacts

    def facts(self, name: TableName) -> TableFacts | None:
        return self.fact if name == FACT else None

    def partition_count(self, name: TableName) -> int | None:
        return 70 if name == FACT else None

    def indexed_bytes(self, name: TableName) -> int | None:
        return self.fact.size_bytes if name == FACT else None


@pytest.mark.parametrize(
    ("fact", "partitions"),
    [
        pytest.param(TableFacts(COLUMNS, ("k",)), 70, id="partitions"),
        pytest.param(TableFacts(COLUMNS, indexed_columns=("k",)), 1, id="none, and a file index"),
        pytest.param(
            TableFacts(COLUMNS, ("k",), provider="delta", indexed_columns=("k",), delta=DeltaFacts(("k",))),
            0,
            id="delta",
        ),
        pytest.param(
            TableFacts(COLUMNS, ("k",), "iceberg", indexed_columns=("k",), iceberg=IcebergFacts(7, ("k",))),
            0,
            id="iceberg",
        ),
    ],
)
def test_spark_lists_no_files_of_tables_that_list_them_themselves(fact: TableFacts, partitions: int) -> None:
    catalog: Catalog = {FACT: fact, SMALL_SIDE: TableFacts(COLUMNS)}
    statement = parse("SELECT * FROM f JOIN d ON f.k = d.k WHERE d.id = 1", chars_max=1_000)
    assert isinstance(statement, Statement)
    planned = plan(statement, catalog, RewriteLimits())
    assert facts_of(planned, {}, Sizes(fact)) == (Fact("f", partitions),)
