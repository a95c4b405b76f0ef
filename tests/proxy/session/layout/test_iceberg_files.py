"""The files of Iceberg tables, as far as their metadata tables tell of them."""

from dataclasses import replace

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT, described, rows
from support.iceberg_file_answers import FILES_SQL, OF_K, a_file
from support.played_sessions import Script, failed, played

from proxy.config.rewriting import CatalogSection, FilesSection
from proxy.operations.query import FailureKind
from proxy.session.catalog.describe import read_description
from proxy.session.catalog.late_answers import UNANSWERED_S
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.iceberg_files import IcebergFiles

FACTS = read_description(described("ice.db.f", ("k", "int"), ("u", "string")))
OF_U = OF_K.replace("`k`", "`u`")
WITH_TEXTS = FILES_SQL.replace(
    "(split_offsets)))), NULL",
    f"(split_offsets)), 'u', named_struct('type', 'string', 'low', CAST({OF_U}.lower_bound AS STRING),"
    f" 'high', CAST({OF_U}.upper_bound AS STRING), 'nulls', {OF_U}.null_value_count,"
    " 'row_groups', size(split_offsets)))), NULL",
)
FOUND = rows(a_file("/f/1", 1, 1), a_file("/f/2", 2, 2))


def clock() -> float:
    return 0.0


def known() -> SessionMetadata:
    return MetadataCache(CatalogSection(), clock).of_nobody_else()


def test_bounds_of_texts_are_left_out_where_they_cannot_be_told() -> None:
    assert FACTS is not None
    script: Script = [(WITH_TEXTS, failed(FailureKind.REJECTED)), (FILES_SQL, FOUND)]
    index = played(IcebergFiles(FilesSection(), clock).files(FACTS, {"k", "U"}, known()), script)
    assert index is not None
    assert [len(index.files), sorted(index.type_names)] == [2, ["k"]]


def test_what_takes_too_long_or_is_too_much_is_not_tried_with_less() -> None:
    assert FACTS is not None
    for kind in (FailureKind.DEADLINE, FailureKind.TOO_MANY_ROWS):
        script: Script = [(WITH_TEXTS, failed(kind))]
        assert played(IcebergFiles(FilesSection(), clock).files(FACTS, {"k", "u"}, known()), script) is None


def test_what_cannot_be_told_of_texts_alone_is_not_tried_again() -> None:
    assert FACTS is not None
    of_u = FILES_SQL.replace("`k`", "`u`").replace("'k'", "'u'").replace("'int'", "'string'")
    script: Script = [(of_u, failed(FailureKind.REJECTED))]
    assert played(IcebergFiles(FilesSection(), clock).files(FACTS, {"u"}, known()), script) is None


def test_of_a_table_without_a_snapshot_nothing_is_asked() -> None:
    assert FACTS is not None
    assert FACTS.iceberg is not None
    assert FACTS.iceberg.snapshot_id == DAYS_SNAPSHOT
    empty = replace(FACTS, iceberg=replace(FACTS.iceberg, snapshot_id=None))
    assert played(IcebergFiles(FilesSection(), clock).files(empty, {"k"}, known()), []) is None


@pytest.mark.parametrize(
    ("kind", "asked_after_s"), [(FailureKind.DEADLINE, UNANSWERED_S), (FailureKind.TOO_MANY_ROWS, 300.0)]
)
def test_files_that_were_not_told_in_time_are_asked_for_again_after_a_minute(
    kind: FailureKind, asked_after_s: float
) -> None:
    assert FACTS is not None
    now, state = [0.0], known()
    files = IcebergFiles(FilesSection(), lambda: now[0])
    assert played(files.files(FACTS, {"k"}, state), [(FILES_SQL, failed(kind))]) is None
    now[0] = asked_after_s - 1.0
    assert played(files.files(FACTS, {"k"}, state), []) is None
    now[0] = asked_after_s
    assert played(files.files(FACTS, {"k"}, state), [(FILES_SQL, FOUND)]) is not None
