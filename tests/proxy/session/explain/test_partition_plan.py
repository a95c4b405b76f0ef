"""EXPLAIN PARTITIONS: the plan of a filter as lines and as JSON, from the lists of a session."""

from contextlib import ExitStack

import pytest
from support.clock import eventually
from support.hbase_gateway import allow_time, gateway_in_memory
from support.played_sessions import DESCRIBE, LISTED, Script, played

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection
from proxy.operations.session_port import SessionOpening
from proxy.session.explain.partition_plan import PartitionPlanView, partition_plan, plan_lines, planned
from proxy.session.explain.view import CountView
from proxy.session.layout.hbase_store import HBasePartitionStore
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import PartitionStore
from proxy.session.session import Session
from proxy.session.session_catalog import KnownPartitions
from proxy.session.shared_state import SharedState
from rewriter import TableFacts, TableName
from rewriter.files.file_facts import FileFacts
from rewriter.files.file_index import FileIndex
from rewriter.partitions.index import PartitionIndex
from rewriter.vocabulary.identifiers import Column

INDEX = PartitionIndex.of(["y", "m"], ["int", "int"], [f"y={y}/m={m}" for y in (2025, 2026) for m in range(1, 13)])
FACTS = TableFacts((Column("y", "int"), Column("m", "int"), Column("x", "int")), ("y", "m"))


class Listing:
    """A session that knows a table's partitions."""

    def __init__(self, known: KnownPartitions) -> None:
        self._known = known
        self.asked: list[TableName] = []

    async def known_partitions(self, name: TableName, _: str) -> KnownPartitions:
        self.asked.append(name)
        return self._known


def plan_of(session: Listing, table: str, condition: str | None) -> PartitionPlanView:
    return played(partition_plan(session, table, condition), [])


def test_the_lines_begin_with_the_result_and_go_on_with_the_scans() -> None:
    plan = plan_of(Listing(KnownPartitions(FACTS, INDEX)), "sales", " y = 2025 AND m > 10 OR y > 2025 AND m = 1 ;")
    assert plan_lines(plan) == [
        "3 of 24 partitions of sales, 14 looked at",
        "",
        "Filter      (y = 2025 AND m > 10) OR (y > 2025 AND m = 1)",
        "Order       y int, m int",
        "",
        "Scan 1",
        "  start        y = 2025, m = 11 (included)",
        "  stop         y = 2025 (included)",
        "  partitions   2 of 2 kept",
        "",
        "Scan 2",
        "  start        y = 2026 (included)",
        "  stop         the last partition",
        "  filter left  m = 1",
        "  partitions   1 of 12 kept",
        "",
        "Partitions",
        "  y=2025/m=11",
        "  y=2025/m=12",
        "  y=2026/m=1",
    ]


def test_a_filter_that_hbase_has_tested_tells_no_number_of_what_was_looked_at() -> None:
    entries = PartitionIndex.of(["y", "m"], ["int", "int"], ["y=2025/m=11"]).entries
    kept = PartitionIndex(INDEX.keys, entries, (), 24)
    plan = plan_of(Listing(KnownPartitions(FACTS, kept, None, (None,))), "sales", "y < 2026 AND m = 11")
    lines = plan_lines(plan)
    assert lines[0] == "1 of 24 partitions of sales"
    assert "  partitions   1 kept" in lines
    assert (plan.scanned, plan.scans[0].scanned) == (None, None)


def test_a_session_does_not_ask_for_a_list_that_another_replica_has_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allow_time(monkeypatch)
    with gateway_in_memory() as gateway, ExitStack() as stack:
        config = Config(catalog=CatalogSection(store="hbase", store_gateway=f"127.0.0.1:{gateway.port}"))
        one, other = (stack.enter_context(open_store(config.catalog)) for _ in range(2))
        assert isinstance(one, HBasePartitionStore)

        def plan(store: PartitionStore, text: str, script: Script) -> PartitionPlanView:
            # As GET /partitions asks: in a session of the proxy's own.
            opened = SessionOpening(owner=str(id(store)), user="ann", login="ann")
            session = Session(SharedState.of(config, lambda: 0.0, store), opened, is_own=True)
            return played(partition_plan(session, "f", text), script)

        january = plan(one, "ds LIKE '2026-01-2%'", [DESCRIBE[1], LISTED])
        eventually(lambda: dict(one.results())["published"] > 0)
        assert plan(other, "ds LIKE '2026-01-2%'", [DESCRIBE[1]]) == january
        assert january.partitions == CountView(31, 10)
        gateway.refused["scannerOpenWithScan"] = "it is ill"
        assert plan(other, "ds LIKE '2026-01-2%'", [DESCRIBE[1], LISTED]) == january, "as without HBase"


def test_a_full_scan_says_why_and_long_lists_say_what_they_leave_off() -> None:
    lines = plan_lines(planned("sales", "m > 1", INDEX))
    assert lines[0] == "22 of 24 partitions of sales, 24 looked at"
    assert lines[4] == (
        "Full scan   m > 1 is a full scan: partitions are in the order of y, and only a condition on y leaves some"
        " out without a look at them."
    )
    assert lines[-1] == "  .. and 2 more partitions"
    many = PartitionIndex.of(["y"], ["int"], [f"y={y}" for y in range(5_000)] + ["y=x"])
    plan = planned("sales", f"y IN ({', '.join(map(str, range(0, 5_000, 2)))})", many)
    assert (plan.scan_count, len(plan.scans), len(plan.names)) == (2_500, 100, 1_000)
    lines = plan_lines(plan)
    assert "Unreadable  1 partitions, which no filter leaves out" in lines
    assert "  .. and 2400 more scans" in lines
    assert len(plan.filter) < 3_000


@pytest.mark.parametrize(
    ("text", "parts"), [("sales", ("sales",)), ("`my db`.`a.b`", ("my db", "a.b")), ("c.d.t", ("c", "d", "t"))]
)
def test_a_table_is_named_as_in_sql(text: str, parts: tuple[str, ...]) -> None:
    session = Listing(KnownPartitions(FACTS, INDEX))
    plan = plan_of(session, text, None)
    assert (plan.refusal, plan.partitions.kept, plan.filter) == (None, 24, "TRUE"), "without a filter all are told"
    assert session.asked == [TableName(parts)]


@pytest.mark.parametrize(
    "text", ["", "a b", "range(5)", "(SELECT 1)", "t VERSION AS OF 1", "t TABLESAMPLE (1 ROWS)"]
)
def test_anything_else_is_not_asked_for(text: str) -> None:
    session = Listing(KnownPartitions(FACTS, INDEX))
    assert plan_of(session, text, "y = 2025").refusal == "The name of the table is not understood."
    assert not session.asked


NO_PARTITIONS = TableFacts((Column("x", "int"),))


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (None, "sales cannot be described in this session."),
        (NO_PARTITIONS, "sales has no partitions that a filter could leave out."),
        (FACTS, "The partitions of sales cannot be listed, or their columns have a type without a certain order."),
    ],
)
def test_a_table_without_a_list_is_refused_with_a_sentence(facts: TableFacts | None, sentence: str) -> None:
    plan = plan_of(Listing(KnownPartitions(facts, None)), "sales", "y = 2025")
    assert (plan.refusal, plan_lines(plan)) == (sentence, [sentence])


def test_a_filter_that_is_not_read_is_refused_with_a_sentence() -> None:
    plan = planned("sales", "x = 1", INDEX)
    assert plan.refusal == "x is not a partition column; the columns are y, m."
    assert plan.columns == {"y": "int", "m": "int"}


def files_of(*paths: str) -> FileIndex:
    return FileIndex({}, tuple(FileFacts(path, 1_000_000, 7, None, {}, ()) for path in paths))


def test_files_and_bytes_are_told_where_a_statement_has_fetched_them() -> None:
    files = files_of(*(f"file:/w/sales/y={y}/m={m}/{part}" for y in (2025, 2026) for m in (1, 2) for part in "ab"))
    plan = plan_of(Listing(KnownPartitions(FACTS, INDEX, files)), "sales", "y = 2026 AND m < 3")
    assert (plan.files, plan.bytes) == (CountView(8, 4), CountView(8_000_000, 4_000_000))
    assert plan.location == "file:/w/sales"
    assert plan_lines(plan)[4:6] == [
        "Files       4 of 8 as indexed, 4.0 MB of 8.0 MB",
        "Location    file:/w/sales",
    ]


@pytest.mark.parametrize("path", ["file:/w/sales/y=2027/m=1/a", "file:/elsewhere/a"])
def test_files_of_no_partition_in_the_list_leave_the_numbers_unknown(path: str) -> None:
    files = files_of("file:/w/sales/y=2025/m=1/a", path)
    plan = plan_of(Listing(KnownPartitions(FACTS, INDEX, files)), "sales", "y = 2025")
    assert (plan.files, plan.bytes, plan.location) == (CountView(), CountView(), None)
    assert plan.partitions.kept == 12


def test_partitions_that_the_file_index_does_not_know_leave_the_numbers_unknown() -> None:
    files = files_of("file:/w/sales/y=2025/m=1/a")
    plan = planned("sales", "y = 2025 AND m < 3", INDEX, files)
    assert (plan.partitions.kept, plan.files, plan.bytes) == (2, CountView(), CountView())
    plan = planned("sales", "y = 2025 AND m = 1", INDEX, files)
    assert (plan.files, plan.bytes) == (CountView(1, 1), CountView(1_000_000, 1_000_000))
