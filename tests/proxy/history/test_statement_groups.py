"""Groups of statements: their sums, whose they are, and that they are made from indexes."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.histories import left_alone, record, scan

from proxy.history.groups import GROUPED_BY, By, Group, groups
from proxy.history.queries import Filter, HistoryReader
from proxy.history.record import id_of_time
from proxy.history.store import FILE_NAME, Store

AT = time.time() - 1_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, bytes_max=4_000_000)) as opened:
        yield opened


def found(directory: Path, by: By, seen_by: str | None = None) -> dict[str | None, Group]:
    lines = HistoryReader(directory / FILE_NAME).groups(Filter(seen_by=seen_by), by)
    assert [one.seconds for one in lines] == sorted((one.seconds for one in lines), reverse=True)
    return {one.name: one for one in lines}


def test_statements_are_grouped_with_their_sums_and_their_savings(store: Store, tmp_path: Path) -> None:
    left: dict[str, Any] = {"fingerprint": "f1", "lists_files": False, "deciding_s": 0.0, "at": AT}
    store.add([left_alone(run_s=10.0, label="board", **left) for _ in range(2)])
    runs = {"lists_files": False, "deciding_s": 0.5, "at": AT, "user": "bob", "client": "10.0.0.9"}
    store.add([record(run_s=1.5, scans=[scan("Sales"), scan("returns")], **runs)])
    store.add([left_alone(run_s=4.0, at=AT, skip_reason="NO_JOIN_IN_TEXT", fingerprint="text-a", scans=[])])
    assert {by: set(found(tmp_path, by)) for by in GROUPED_BY} == {
        "table": {"sales", "returns"},
        "user": {"ann", "bob"},
        "client": {"127.0.0.1", "10.0.0.9"},
        "label": {"board", None},
    }
    bob = found(tmp_path, "user")["bob"]
    assert (bob.runs, bob.rewritten, bob.seconds, bob.left_s) == (1, 1, 2.0, 0.0)
    assert (bob.partitions_spared, bob.partitions_total) == (5_600, 5_848)
    assert bob.savings.measured_s == pytest.approx(10.0 - 2.0), "by ann's originals"
    assert (
        found(tmp_path, "table")["returns"].savings == found(tmp_path, "client")["10.0.0.9"].savings == bob.savings
    )
    assert found(tmp_path, "user")["ann"].left_s == 20.0, "nobody would have rewritten the third"
    assert found(tmp_path, "table")["sales"].runs == 3
    assert set(found(tmp_path, "user", seen_by="ann")) == {"ann"}
    assert not found(tmp_path, "client", seen_by="bob")["10.0.0.9"].savings.is_known


@pytest.mark.parametrize("by", GROUPED_BY)
def test_a_week_is_summed_without_its_rows_and_without_each_run_beside_each_original(
    store: Store, tmp_path: Path, by: By
) -> None:
    """With 200,000 statements that took 36 s."""
    store.add([record(), left_alone()])
    asked: list[str] = []
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.set_trace_callback(asked.append)
        groups(connection, by, "s.id >= ?", [id_of_time(AT)], "1")
        connection.set_trace_callback(None)
        steps = [row[3] for sql in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("statements_sums" in step for step in steps)
    read = [step for step in steps if step.startswith(("SCAN", "SEARCH"))]
    assert not [step for step in read if "INDEX" in step and "COVERING" not in step]
    assert not [step for step in read if step.startswith("SCAN originals")]
