"""How a session's Spark packs files: what is asked of it, how often, and what is left to it."""

import pytest
from support.clock import Clock
from support.iceberg_answers import older_scan
from support.packing_answers import (
    EXPLAIN,
    FILES,
    RANGE,
    SETTINGS,
    SIZES,
    UNCHOSEN,
    T,
    nothing_known,
    plan,
    setting,
)
from support.played_sessions import failed, played

from proxy.config.rewriting import SplitsSection
from proxy.operations.query import FailureKind, QueryResult, ask_driver
from proxy.session.catalog.split_packing import (
    KnownPackings,
    PackingTerms,
    SplitPacking,
    packings,
    read_size,
    worth_asking,
)
from rewriter import Column, RewriteLimits, Rule, Statement, TableFacts, TableName, parse
from rewriter import plan as plan_of
from rewriter.files.file_index import FileIndex
from rewriter.splits.packing import GroupLimits, IcebergPacking, Packing, SplitHints

MIB = 1 << 20
TERMS = PackingTerms(believed_s=300.0, deadline_s=5.0)
ICEBERG = (EXPLAIN, plan("+- BatchScan ice.d.t[v#1L] IcebergScan(table=ice.d.t, branch=null, groupedBy=)"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def known(clock: Clock) -> KnownPackings:
    return nothing_known(clock)


def asked(
    known: KnownPackings, script: list[tuple[str, QueryResult]], table: TableName = T
) -> dict[TableName, Packing]:
    return played(packings(ask_driver, [table], known, TERMS), script)


def test_slots_and_settings_are_asked_once_and_each_table_by_itself(clock: Clock, known: KnownPackings) -> None:
    assert asked(known, [*SETTINGS, FILES]) == {T: Packing(8, 128 * MIB, 4 * MIB)}
    clock.now = 299.0
    assert asked(known, []) == {T: Packing(8, 128 * MIB, 4 * MIB)}
    clock.now = 300.0
    assert asked(known, [*SETTINGS, FILES])


def test_what_has_expired_lately_is_used_where_it_is_asked_for_again_meanwhile(
    clock: Clock, known: KnownPackings
) -> None:
    asked(known, [*SETTINGS, FILES])
    assert known.are_current([T])
    clock.now = 500.0
    assert not known.are_current([T])
    due = PackingTerms(believed_s=300.0, deadline_s=5.0, grace_s=300.0)
    assert played(packings(ask_driver, [T], known, due), []) == {T: Packing(8, 128 * MIB, 4 * MIB)}
    clock.now = 600.0
    assert played(packings(ask_driver, [T], known, due), [*SETTINGS, FILES])


def test_once_settings_may_differ_they_are_asked_again_and_what_was_asked_before_is_not_remembered(
    known: KnownPackings,
) -> None:
    asking = packings(ask_driver, [T], known, TERMS)
    _ = asking.send(None)
    for _, answer in SETTINGS:
        _ = asking.send(answer)
    known.forget()
    with pytest.raises(StopIteration):
        asking.send(FILES[1])
    assert asked(known, [*SETTINGS, FILES])
    known.forget()
    assert asked(known, [*SETTINGS, FILES])


def test_of_many_tables_those_asked_last_are_remembered() -> None:
    known = KnownPackings(Clock(), tables_max=1)
    asked(known, [*SETTINGS, FILES])
    asked(known, [("EXPLAIN SELECT * FROM `u`", FILES[1])], TableName(("u",)))
    assert asked(known, [FILES])


def test_a_table_that_spark_is_late_to_plan_is_left_alone_for_a_while(known: KnownPackings) -> None:
    assert asked(known, [*SETTINGS, (EXPLAIN, failed(FailureKind.DEADLINE))]) == {}
    assert asked(known, []) == {}


@pytest.mark.parametrize("planned", [ICEBERG, (EXPLAIN, older_scan("ice.d.t"))], ids=["4.1", "3.5"])
def test_iceberg_packs_its_own_files(planned: tuple[str, QueryResult]) -> None:
    assert asked(nothing_known(), [*SETTINGS, planned]) == {T: IcebergPacking(8)}


@pytest.mark.parametrize(
    "text",
    [
        # CACHE TABLE: the file scan in the plan is what filled the memory.
        "Scan In-memory table t [v#1L]\n+- InMemoryRelation [v#1L], StorageLevel(..)\n+- FileScan parquet t[v#1L]",
        "FileScan parquet c.d.t[v#1L] Batched: true, Bucketed: true, Location: InMemoryFileIndex(..)",
        "BatchScan ice.d.t[v#1L] IcebergScan(table=ice.d.t, branch=null, filters=, groupedBy=k_bucket)",
        str(older_scan("ice.d.t", grouped_by="k_bucket").rows[0][0]),
        "Scan hive c.d.t [v#1L], HiveTableRelation [..]",
        "",
    ],
)
def test_what_is_not_read_from_files_that_spark_packs_is_left_alone(known: KnownPackings, text: str) -> None:
    assert asked(known, [*SETTINGS, (EXPLAIN, plan(text))]) == {}
    assert asked(known, []) == {}


@pytest.mark.parametrize(
    "script",
    [
        [(RANGE[0], plan("Range"))],
        [(RANGE[0], failed(FailureKind.DEADLINE))],
        # Whoever sets these says how many splits there are to be.
        [RANGE, setting("minPartitionNum", "200")],
        [RANGE, UNCHOSEN[0], setting("maxPartitionNum", "50")],
        [RANGE, *UNCHOSEN, setting("maxPartitionBytes", "half"), SIZES[1]],
        [RANGE, *UNCHOSEN, setting("maxPartitionBytes", "64MB"), SIZES[1]],
        [RANGE, *UNCHOSEN, SIZES[0], setting("openCostInBytes", "134217728")],
    ],
)
def test_settings_that_are_chosen_or_not_understood_leave_all_to_spark(
    known: KnownPackings, script: list[tuple[str, QueryResult]]
) -> None:
    assert asked(known, script) == {}
    assert asked(known, []) == {}


@pytest.mark.parametrize(
    ("text", "size"), [("1g", 1024 * MIB), ("64 KB", 65_536), ("7", 7), ("-1", None), ("", None)]
)
def test_sizes_are_read_as_spark_reads_them(text: str, size: int | None) -> None:
    assert read_size(text) == size


def test_of_a_table_with_few_files_nothing_is_asked() -> None:
    files = FileIndex.of_rows([(f"file:/t/{n}", 5, 7, 1, "{}", None) for n in range(32)], {"x": "int"})
    assert worth_asking({T: files}, [T], saved_min=32) == set()
    assert worth_asking({T: files}, [T], saved_min=31) == {T}
    assert played(packings(ask_driver, [], nothing_known(), TERMS), []) == {}


def hints(
    settings: SplitsSection, limits: RewriteLimits, script: list[tuple[str, QueryResult]]
) -> SplitHints | None:
    """The split hints of a statement that narrows one indexed table of forty files."""
    statement = parse(f"SELECT v FROM {T.sql} WHERE x < 7", chars_max=1_000, has_file_index=True)
    assert isinstance(statement, Statement)
    facts = TableFacts((Column("x", "int"), Column("v", "int")), indexed_columns=("x",))
    planned = plan_of(statement, {T: facts}, limits)
    files = FileIndex.of_rows([(f"file:/t/{n}", 5, 7, 1, "{}", None) for n in range(40)], {"x": "int"})
    packing = SplitPacking(settings, nothing_known(), deadline_s=5.0)
    return played(packing.hints(ask_driver, planned, {}, {T: files}, limits), script)


def test_a_statement_gets_the_packing_of_its_tables_and_the_configured_limits() -> None:
    settings, limits = SplitsSection(max_small_splits_grouped=4, saved_min=20), RewriteLimits(has_file_index=True)
    found = hints(settings, limits, [*SETTINGS, FILES])
    assert found == SplitHints({T: Packing(8, 128 * MIB, 4 * MIB)}, GroupLimits(4, 20))


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        (SplitsSection(enabled=False), RewriteLimits(has_file_index=True)),
        (SplitsSection(), RewriteLimits(has_file_index=True, rules_off=frozenset({Rule.SPLITS}))),
    ],
    ids=["by the section", "by the rule"],
)
def test_where_split_hints_are_off_nothing_is_asked(settings: SplitsSection, limits: RewriteLimits) -> None:
    assert hints(settings, limits, []) is None
