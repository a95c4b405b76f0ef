"""Samples of tables: the questions that are asked, and what is made of their answers."""

from collections.abc import Sequence

import pytest

from proxy.advice.table_sample import ROWS_MAX, TableSample, UnmeasuredError, sample
from proxy.operations.query import FailureKind, QueryFailed, QueryResult, Rows, Value
from rewriter import Column, TableFacts, TableName
from rewriter.files.file_index import Bounds

FACTS = TableFacts(
    (Column("Day", "date"), Column("amount", "decimal(5,2)"), Column("region", "string")),
    ("region",),
    full_name=TableName(("spark_catalog", "shop", "sales")),
)
NAMES = ("region", "day", "amount")
SIZES = (2, 4, 4_000, 100)
FILE = ("file:/sales/1.parquet", 1_000, 7, 25, "east", "east", 0, 19_000, 19_002, 0, "1.00", None, 25)
ROW = ("east", 19_001, "1.50")


def asked(
    *answers: QueryResult | Sequence[Sequence[Value]], bytes_max: int = 1_000_000
) -> tuple[TableSample, list[str]]:
    """The sample by these answers, and the questions."""
    questions = []
    asking = sample(FACTS, NAMES, bytes_max=bytes_max, deadline_s=5)
    query = asking.send(None)
    for answer in answers:
        questions.append(query.sql)
        result = answer if isinstance(answer, QueryFailed | Rows) else Rows((), tuple(map(tuple, answer)), 0.0)
        try:
            query = asking.send(result)
        except StopIteration as end:
            return end.value, questions
    raise AssertionError(f"it asks more: {query.sql}")


def test_a_table_is_counted_and_then_its_files_and_rows_are_read() -> None:
    found, questions = asked([SIZES], [FILE], [ROW])
    assert (found.partition_count, found.file_count, found.bytes, found.row_count) == SIZES
    assert found.type_names == {"region": "string", "day": "date", "amount": "decimal(5,2)"}
    assert found.partition_columns == ("region",)
    assert found.files[0].bounds["day"] == Bounds("2022-01-08", "2022-01-10", 0)
    assert found.files[0].bounds["amount"] == Bounds("1.00", None, 25)
    assert found.rows == (("east", "2022-01-09", "1.50"),)
    assert found.share == pytest.approx(0.25)
    assert not any("WHERE" in question for question in questions)


def test_of_a_large_table_some_files_are_chosen_by_their_paths() -> None:
    _, (_, files, rows) = asked([SIZES], [FILE], [ROW], bytes_max=1_000)
    assert "WHERE pmod(xxhash64(_metadata.file_path), 4) = 0" in files
    assert "WHERE pmod(xxhash64(_metadata.file_path), 4) = 0" in rows


def test_of_many_rows_some_are_chosen_by_chance() -> None:
    many = (*FILE[:3], 10 * ROWS_MAX, *FILE[4:])
    _, (*_, rows) = asked([SIZES], [many], [ROW])
    assert "WHERE rand(24) < 0.09" in rows


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([QueryFailed(FailureKind.DEADLINE, "late", 5.0)], "its files could not be counted: deadline, late"),
        ([[(0, 0, None, None)]], "it has no rows"),
        ([[SIZES], []], "raise --sample-mb"),
        (
            [[SIZES], [FILE], QueryFailed(FailureKind.REJECTED, "no", 0.1)],
            "its rows could not be read: rejected, no",
        ),
        ([[SIZES], [FILE], [("east", 1.5, "x")]], "its values could not be read"),
    ],
)
def test_a_table_that_cannot_be_looked_at_has_a_sentence(
    answers: list[QueryResult | Sequence[Sequence[Value]]], sentence: str
) -> None:
    with pytest.raises(UnmeasuredError, match=sentence):
        asked(*answers)
