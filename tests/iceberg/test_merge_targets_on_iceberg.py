"""MERGE into Iceberg tables whose target is narrowed: equal tables, and an error for forgotten keys."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.narrowed_merges import MERGES, differences, passed_unnoticed, session_in

from demo.hive import connect

MODES = ("copy-on-write", "merge-on-read")
USING = (
    "USING iceberg PARTITIONED BY (ds) TBLPROPERTIES ('format-version'='2', 'write.merge.mode'='{0}',"
    " 'write.update.mode'='{0}', 'write.delete.mode'='{0}')"
)


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(iceberg_server.endpoint)) as found:
        yield session_in("ice.merge_targets", found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_a_narrowed_merge_into_iceberg_leaves_the_same_table(
    merge: str, mode: str, session: hive.Connection
) -> None:
    assert not differences(session, merge, "iceberg", USING.format(mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_a_merge_into_iceberg_fails_for_forgotten_keys(merge: str, mode: str, session: hive.Connection) -> None:
    assert not passed_unnoticed(session, merge, "iceberg", USING.format(mode))
