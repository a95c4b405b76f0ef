"""Which tables are read at a snapshot: those of which the version reads exactly what the name reads."""

from collections.abc import Sequence

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT, NEXT_SNAPSHOT, rows, scan
from support.played_sessions import failed, played

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.catalog.caches import NegativeCache
from proxy.session.catalog.iceberg_snapshots import SnapshotRead, Snapshots
from rewriter import TableName, UnpinnedReason

D = TableName(("d",))
NAME = "EXPLAIN SELECT 1 FROM `d`"
VERSION = f"EXPLAIN SELECT 1 FROM `d` VERSION AS OF {DAYS_SNAPSHOT}"
NOW = SnapshotRead("ice.db.d", 3, DAYS_SNAPSHOT)
SAME = scan("ice.db.d", schema=3)
CHANGED = UnpinnedReason.SCHEMA_CHANGED


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def current(
    snapshots: Snapshots, script: Sequence[tuple[str, QueryResult]], unanswered: NegativeCache | None = None
) -> SnapshotRead | UnpinnedReason:
    asking = snapshots.current({D}, CatalogSection(), unanswered or nothing_in_vain())
    found: dict[TableName, SnapshotRead | UnpinnedReason] = played(asking, script)
    (what,) = found.values()
    return what


def nothing_in_vain() -> NegativeCache:
    return NegativeCache(lambda: 0.0, believed_s=60.0)


def test_a_version_that_reads_what_the_name_reads_is_the_current_one() -> None:
    assert current(Snapshots(Clock()), [(NAME, SAME), (VERSION, SAME)]) == NOW


def test_that_a_version_reads_what_the_name_reads_is_asked_once_for_each_snapshot() -> None:
    snapshots = Snapshots(Clock())
    _ = current(snapshots, [(NAME, SAME), (VERSION, SAME)])
    assert current(snapshots, [(NAME, SAME)]) == NOW
    later, version = (
        scan("ice.db.d", snapshot=NEXT_SNAPSHOT),
        VERSION.replace(str(DAYS_SNAPSHOT), str(NEXT_SNAPSHOT)),
    )
    found = current(snapshots, [(NAME, later), (version, later)])
    assert found == SnapshotRead("ice.db.d", 0, NEXT_SNAPSHOT)


def test_a_table_whose_schema_is_younger_than_its_snapshot_is_not_read_at_it() -> None:
    """Its columns may have the same names and types: one was dropped, and another one added in its place."""
    snapshots = Snapshots(Clock())
    assert current(snapshots, [(NAME, SAME), (VERSION, scan("ice.db.d", schema=1))]) is CHANGED
    assert current(snapshots, [(NAME, SAME)]) is CHANGED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (scan("ice.db.d", branch="audit"), UnpinnedReason.ON_A_BRANCH),
        (rows(), UnpinnedReason.PLAN_UNCLEAR),
        (rows(("== Physical Plan ==\n*(1) Scan parquet db.d",)), UnpinnedReason.PLAN_UNCLEAR),
        (
            rows(("Error occurred during query planning:",), ("Cannot find snapshot with ID 77",)),
            UnpinnedReason.PLAN_UNCLEAR,
        ),
        (rows(("\n".join(str(row[0]) for row in (*SAME.rows, *SAME.rows)),)), UnpinnedReason.PLAN_UNCLEAR),
        (failed(FailureKind.REJECTED), UnpinnedReason.PLAN_FAILED),
        (failed(FailureKind.DEADLINE), UnpinnedReason.PLAN_FAILED),
    ],
)
def test_a_name_that_is_not_certain_to_read_a_snapshot_is_left_as_it_is(
    answer: QueryResult, why: UnpinnedReason
) -> None:
    assert current(Snapshots(Clock()), [(NAME, answer)]) is why


def test_an_empty_table_has_no_snapshot() -> None:
    empty = str(SAME.rows[0][0]).replace(str(DAYS_SNAPSHOT), "null")
    assert current(Snapshots(Clock()), [(NAME, rows((empty,)))]) is UnpinnedReason.PLAN_UNCLEAR


@pytest.mark.parametrize(
    ("late", "again"),
    [
        ([(NAME, failed(FailureKind.DEADLINE))], []),
        ([(NAME, SAME), (VERSION, failed(FailureKind.DEADLINE))], [(NAME, SAME)]),
    ],
)
def test_what_was_asked_in_vain_is_asked_again_after_a_while(
    late: list[tuple[str, QueryResult]], again: list[tuple[str, QueryResult]]
) -> None:
    clock = Clock()
    snapshots, unanswered = Snapshots(clock), NegativeCache(clock, believed_s=60.0)
    assert current(snapshots, late, unanswered) is UnpinnedReason.PLAN_FAILED
    clock.now = 59.0
    assert current(snapshots, again, unanswered) is UnpinnedReason.PLAN_FAILED
    clock.now = 60.0
    assert current(snapshots, [(NAME, SAME), (VERSION, SAME)], unanswered) == NOW


def test_what_one_user_asked_in_vain_another_one_may_be_told() -> None:
    snapshots = Snapshots(Clock())
    assert (
        current(snapshots, [(NAME, failed(FailureKind.DEADLINE))], nothing_in_vain()) is UnpinnedReason.PLAN_FAILED
    )
    assert current(snapshots, [(NAME, SAME), (VERSION, SAME)], nothing_in_vain()) == NOW


def test_a_snapshot_that_is_gone_at_once_is_not_named() -> None:
    gone = rows(("Error occurred during query planning:",), (f"Cannot find snapshot with ID {DAYS_SNAPSHOT}",))
    assert current(Snapshots(Clock()), [(NAME, SAME), (VERSION, gone)]) is CHANGED


def test_an_iceberg_whose_plans_name_no_schema_is_not_asked_with_each_statement() -> None:
    clock = Clock()
    snapshots = Snapshots(clock)
    silent = rows(("+- BatchScan ice.db.d[] IcebergScan(table=ice.db.d, branch=null, filters=, groupedBy=)",))
    assert current(snapshots, [(NAME, silent)]) is UnpinnedReason.PLANS_TELL_NO_SCHEMA
    clock.now = 599.0
    assert current(snapshots, []) is UnpinnedReason.PLANS_TELL_NO_SCHEMA
    clock.now = 601.0
    assert current(snapshots, [(NAME, SAME), (VERSION, SAME)]) == NOW


def test_only_so_many_are_remembered() -> None:
    snapshots = Snapshots(Clock(), read_alike_max=1)
    _ = current(snapshots, [(NAME, SAME), (VERSION, SAME)])
    e, other = TableName(("e",)), scan("ice.db.e")
    script = [(sql.replace("`d`", "`e`"), other) for sql in (NAME, VERSION)]
    assert played(snapshots.current({e}, CatalogSection(), nothing_in_vain()), script).keys() == {e}
    assert current(snapshots, [(NAME, SAME), (VERSION, SAME)]) == NOW
