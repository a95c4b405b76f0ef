"""What a rewritten text rests on, and which writes take that away."""

import pytest

from proxy.session.consistency.read_set import ReadSet
from proxy.session.consistency.write_fence import LocalWriteLog
from proxy.statements.written_tables import WrittenTables
from rewriter import SkipReason, TableName

ASKED, PINNED, READ = (TableName((word,)) for word in ("asked", "pinned", "read"))
NO_TABLES: frozenset[TableName] = frozenset()
WRITTEN, UNSETTLED = SkipReason.SMALL_SIDE_WRITTEN, SkipReason.TABLES_UNSETTLED


@pytest.fixture
def writes() -> LocalWriteLog:
    return LocalWriteLog()


@pytest.fixture
def read_set(writes: LocalWriteLog) -> ReadSet:
    """Of a statement that names three tables, one of them at a snapshot too."""
    named = frozenset({ASKED, PINNED, READ})
    return ReadSet(writes.open(), frozenset({ASKED}), frozenset({PINNED}), named)


@pytest.mark.parametrize(
    ("written", "skip"),
    [
        (["other"], None),
        (["asked"], WRITTEN),
        (["read"], None),
        (["pinned"], None),
        (["pinned", "other"], None),
        (["pinned", "read"], WRITTEN),
        (["read", "other"], None),
    ],
)
def test_a_text_is_out_of_date_by_what_was_written_and_what_was_read_of_it(
    writes: LocalWriteLog, read_set: ReadSet, written: list[str], skip: SkipReason | None
) -> None:
    for word in written:
        writes.end(writes.begin(WrittenTables(["insert", word])))
    assert read_set.skip() is skip
    assert read_set.is_unchanged() is (skip is None)


def test_versions_of_one_table_are_written_as_one(writes: LocalWriteLog) -> None:
    old = TableName(("pinned",), "VERSION AS OF 1")
    read_set = ReadSet(writes.open(), NO_TABLES, frozenset({PINNED}), frozenset({PINNED, old}))
    writes.end(writes.begin(WrittenTables(["pinned"])))
    assert read_set.skip() is None
