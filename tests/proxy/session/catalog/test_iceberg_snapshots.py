"""Which tables are read at a snapshot: those of which the version reads exactly what the name reads."""

from collections.abc import Sequence

import pytest
from support.clock import Clock
from support.iceberg_answers import DAYS_SNAPSHOT, NEXT_SNAPSHOT, older_scan, scan
from support.played_sessions import failed, played, rows

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import FailureKind, QueryResult, ask_driver
from proxy.session.catalog.caches import NegativeCache
from proxy.session.catalog.iceberg_snapshots import SnapshotRead, Snapshots
from rewriter import TableName, UnpinnedReason

D = TableName(("d",))
NAME = "EXPLAIN SELECT 1 FROM `d`"
VERSION = f"EXPLAIN SELECT 1 FROM `d` VERSION AS OF {DAYS_SNAPSHOT}"
NOW = SnapshotRead("ice.db.d", 3, DAYS_SNAPSHOT)
SAME = scan("ice.db.d", schema=3)
CHANGED = UnpinnedReason.SCHEMA_CHANGED
ALIKE = [(NAME, SAME), (VERSION, SAME)]
LATE = failed(FailureKind.DEADLINE)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def snapshots(clock: Clock) -> Snapshots:
    return Snapshots(clock)


def current(
    snapshots: Snapshots, script: Sequence[tuple[str, QueryResult]], unanswered: NegativeCache | None = None
) -> SnapshotRead | UnpinnedReason:
    asking = snapshots.current(ask_driver, {D}, CatalogSection(), unanswered or nothing_in_vain())
    found: dict[TableName, SnapshotRead | UnpinnedReason] = played(asking, script)
    (what,) = found.values()
    return what


def nothing_in_vain() -> NegativeCache:
    return NegativeCache(lambda: 0.0, believed_s=60.0)


def test_that_a_version_reads_what_the_name_reads_is_asked_once_for_each_snapshot(snapshots: Snapshots) -> None:
    assert current(snapshots, ALIKE) == current(snapshots, [(NAME, SAME)]) == NOW
    later = scan("ice.db.d", snapshot=NEXT_SNAPSHOT)
    found = current(snapshots, [(NAME, later), (VERSION.replace(str(DAYS_SNAPSHOT), str(NEXT_SNAPSHOT)), later)])
    assert found == SnapshotRead("ice.db.d", 0, NEXT_SNAPSHOT)


def test_a_table_whose_schema_is_younger_than_its_snapshot_is_not_read_at_it(snapshots: Snapshots) -> None:
    """Its columns may have the same names and types: one was dropped, and another one added in its place."""
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
        # An empty table.
        (rows((str(SAME.rows[0][0]).replace(str(DAYS_SNAPSHOT), "null"),)), UnpinnedReason.PLAN_UNCLEAR),
        (failed(FailureKind.REJECTED), UnpinnedReason.PLAN_FAILED),
        (LATE, UnpinnedReason.PLAN_FAILED),
    ],
)
def test_a_name_that_is_not_certain_to_read_a_snapshot_is_left_as_it_is(
    answer: QueryResult, why: UnpinnedReason
) -> None:
    assert current(Snapshots(Clock()), [(NAME, answer)]) is why


@pytest.mark.parametrize(
    ("late", "again"), [([(NAME, LATE)], []), ([(NAME, SAME), (VERSION, LATE)], [(NAME, SAME)])]
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
    assert current(snapshots, ALIKE, unanswered) == NOW


def test_what_one_user_asked_in_vain_another_one_may_be_told(snapshots: Snapshots) -> None:
    assert current(snapshots, [(NAME, LATE)]) is UnpinnedReason.PLAN_FAILED
    assert current(snapshots, ALIKE) == NOW


def test_a_snapshot_that_is_gone_at_once_is_not_named() -> None:
    gone = rows(("Error occurred during query planning:",), (f"Cannot find snapshot with ID {DAYS_SNAPSHOT}",))
    assert current(Snapshots(Clock()), [(NAME, SAME), (VERSION, gone)]) is CHANGED


@pytest.mark.parametrize(
    "silent",
    [
        rows(("+- BatchScan ice.db.d[] IcebergScan(table=ice.db.d, branch=null, filters=, groupedBy=)",)),
        older_scan("ice.db.d"),
        older_scan("ice.db.d", branch="audit"),
    ],
)
def test_an_iceberg_whose_plans_name_no_schema_is_not_asked_with_each_statement(
    clock: Clock, snapshots: Snapshots, silent: QueryResult
) -> None:
    assert current(snapshots, [(NAME, silent)]) is UnpinnedReason.PLANS_TELL_NO_SCHEMA
    clock.now = 599.0
    assert current(snapshots, []) is UnpinnedReason.PLANS_TELL_NO_SCHEMA
    clock.now = 601.0
    assert current(snapshots, ALIKE) == NOW


def test_only_so_many_are_remembered() -> None:
    snapshots = Snapshots(Clock(), read_alike_max=1)
    _ = current(snapshots, ALIKE)
    e, other = TableName(("e",)), scan("ice.db.e")
    script = [(sql.replace("`d`", "`e`"), other) for sql in (NAME, VERSION)]
    assert played(snapshots.current(ask_driver, {e}, CatalogSection(), nothing_in_vain()), script).keys() == {e}
    assert current(snapshots, ALIKE) == NOW
