"""MERGE into Delta tables whose target is narrowed: equal tables, and an error for forgotten keys."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.narrowed_merges import MERGES, differences, passed_unnoticed, session_in

from demo.hive import connect

USING = "USING delta PARTITIONED BY (ds)"


@pytest.fixture(scope="module")
def session(delta_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(delta_server.endpoint)) as found:
        yield session_in("merge_targets", found)


@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_a_narrowed_merge_into_delta_leaves_the_same_table(merge: str, session: hive.Connection) -> None:
    assert not differences(session, merge, "delta", USING)


@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_a_merge_into_delta_fails_for_forgotten_keys(merge: str, session: hive.Connection) -> None:
    assert not passed_unnoticed(session, merge, "delta", USING)
