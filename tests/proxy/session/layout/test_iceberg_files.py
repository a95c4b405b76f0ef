"""The files of Iceberg tables, as far as their metadata tables tell of them."""

from dataclasses import replace

import pytest
from support.clock import Clock
from support.iceberg_answers import DAYS_SNAPSHOT, FILES_SQL, OF_K, a_file, described
from support.played_sessions import Script, failed, played, rows

from proxy.config.rewriting import CatalogSection, FilesSection
from proxy.operations.query import FailureKind, ask_driver
from proxy.session.catalog.describe import read_description
from proxy.session.catalog.late_answers import UNANSWERED_S
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.iceberg_files import IcebergFiles
from rewriter import TableFacts
from rewriter.files.file_index import FileIndex

FACTS = read_description(described("ice.db.f", ("k", "int"), ("u", "string"))) or TableFacts(())
OF_U = OF_K.replace("`k`", "`u`")
WITH_TEXTS = FILES_SQL.replace(
    "(split_offsets)))), NULL",
    f"(split_offsets)), 'u', named_struct('type', 'string', 'low', CAST({OF_U}.lower_bound AS STRING),"
    f" 'high', CAST({OF_U}.upper_bound AS STRING), 'nulls', {OF_U}.null_value_count,"
    " 'row_groups', size(split_offsets)))), NULL",
)
FOUND = rows(a_file("/f/1", 1, 1), a_file("/f/2", 2, 2))


def known() -> SessionMetadata:
    return MetadataCache(CatalogSection(), Clock()).of_nobody_else()


def found(facts: TableFacts, columns: set[str], script: Script) -> FileIndex | None:
    return played(IcebergFiles(FilesSection(), Clock()).files(ask_driver, facts, columns, known()), script)


def test_bounds_of_texts_are_left_out_where_they_cannot_be_told() -> None:
    index = found(FACTS, {"k", "U"}, [(WITH_TEXTS, failed(FailureKind.REJECTED)), (FILES_SQL, FOUND)])
    assert index is not None
    assert [len(index.files), sorted(index.type_names)] == [2, ["k"]]


def test_what_takes_too_long_or_is_too_much_is_not_tried_with_less() -> None:
    for kind in (FailureKind.DEADLINE, FailureKind.TOO_MANY_ROWS):
        assert found(FACTS, {"k", "u"}, [(WITH_TEXTS, failed(kind))]) is None


def test_what_cannot_be_told_of_texts_alone_is_not_tried_again() -> None:
    of_u = FILES_SQL.replace("`k`", "`u`").replace("'k'", "'u'").replace("'int'", "'string'")
    assert found(FACTS, {"u"}, [(of_u, failed(FailureKind.REJECTED))]) is None


def test_of_a_table_without_a_snapshot_nothing_is_asked() -> None:
    assert FACTS.iceberg is not None
    assert FACTS.iceberg.snapshot_id == DAYS_SNAPSHOT
    empty = replace(FACTS, iceberg=replace(FACTS.iceberg, snapshot_id=None))
    assert found(empty, {"k"}, []) is None


@pytest.mark.parametrize(
    ("kind", "asked_after_s"), [(FailureKind.DEADLINE, UNANSWERED_S), (FailureKind.TOO_MANY_ROWS, 300.0)]
)
def test_files_that_were_not_told_in_time_are_asked_for_again_after_a_minute(
    kind: FailureKind, asked_after_s: float
) -> None:
    clock, state = Clock(), known()
    files = IcebergFiles(FilesSection(), clock)
    assert played(files.files(ask_driver, FACTS, {"k"}, state), [(FILES_SQL, failed(kind))]) is None
    clock.now = asked_after_s - 1.0
    assert played(files.files(ask_driver, FACTS, {"k"}, state), []) is None
    clock.now = asked_after_s
    assert played(files.files(ask_driver, FACTS, {"k"}, state), [(FILES_SQL, FOUND)]) is not None
