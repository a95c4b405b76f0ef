"""The first lines of an explanation."""

from msgspec import structs
from support.admin_pages import star
from support.histories import scan

from proxy.session.explain.summary import summary
from proxy.session.explain.text import text
from proxy.session.explain.view import CountView, ExplainView, NarrowingView, ScanView, SplitsView

DATES = structs.replace(scan("dates", skip="NOT_PARTITIONED"), alias="d", is_fact=False)
SALES = structs.replace(scan(), alias="sales")


def explained(
    *scans: ScanView, changed: bool = True, skip: str | None = None, key_queries_ms: float = 72.4
) -> ExplainView:
    return ExplainView(
        original="SELECT 1",
        rewritten="SELECT 2" if changed else "SELECT 1",
        changed=changed,
        scans=list(scans),
        skip_reason=skip,
        skip_sentence=skip,
        cause=None,
        cost_report=None,
        quarantined=[],
        snapshots=[],
        timings_ms={"catalog": 1.0, "key_queries": key_queries_ms, "total": 100.0},
    )


def test_one_narrowed_scan_is_one_line() -> None:
    found = explained(SALES, DATES)
    assert summary(found) == ["Scan of sales: 124 of 2,924 partitions kept, keys of dates, 31 keys, 72 ms"]
    assert text(found).splitlines()[:3] == [*summary(found), "", "Rewritten:"]


def test_several_narrowed_scans_are_a_line_each_and_the_time_of_all() -> None:
    both = "keys of dates, 31 keys, keys of stores, 4 keys"
    assert summary(explained(*star(0.0).scans)) == [
        f"Scan of sales AS s: 124 of 2,924 partitions and 310 of 8,000 files kept, {both}",
        "Scan of returns AS r: 40 of 2,924 partitions kept, keys of dates, 31 keys",
        "Key queries: 72 ms",
    ]


def test_row_groups_are_counted_within_the_files_that_are_left() -> None:
    counts = {"files": CountView(310, 300), "row_groups": CountView(6_000, 320)}
    found = explained(structs.replace(SALES, **counts), DATES)
    kept = "124 of 2,924 partitions, 300 of 310 files and 320 of 6,000 row groups kept"
    assert summary(found) == [f"Scan of sales: {kept}, keys of dates, 31 keys, 72 ms"]
    assert "  row groups   320 of 6000 kept, or pages, of these files" in text(found).splitlines()
    found = explained(structs.replace(SALES, partitions=CountView(), **counts), DATES)
    assert summary(found)[0].startswith("Scan of sales: 300 of 310 files and 320 of 6,000 row groups kept,")


def test_of_a_delta_table_the_bytes_alone_are_known() -> None:
    found = explained(structs.replace(SALES, partitions=CountView(), bytes=CountView(5_000_000, 1_000_000)))
    assert "  bytes        1.0 MB of 5.0 MB kept" in text(found).splitlines()
    assert summary(found)[0].startswith("Scan of sales: 1.0 MB of 5.0 MB kept, keys of")


def test_remembered_keys_take_no_time_and_unknown_counts_are_said_to_be_unknown() -> None:
    uncounted = structs.replace(SALES, partitions=CountView(2_924))
    assert summary(explained(uncounted, DATES, key_queries_ms=0.0)) == [
        "Scan of sales: narrowed by an unknown share, keys of dates, 31 keys"
    ]


def test_partitions_that_match_and_ranges_are_told_from_keys() -> None:
    for asks_for, told in (("partitions", "matched with dates"), ("ranges", "keys of dates, 31 ranges")):
        reducer = structs.replace(SALES.reducers[0], asks_for=asks_for)
        found = explained(structs.replace(SALES, reducers=[reducer]), DATES)
        assert summary(found) == [f"Scan of sales: 124 of 2,924 partitions kept, {told}, 72 ms"]


def test_keys_that_were_not_used_and_tables_that_are_not_known_are_not_made_up() -> None:
    unused = structs.replace(SALES.reducers[0], keys=None, join="s.store = t.id")
    found = explained(structs.replace(SALES, reducers=[*SALES.reducers, unused]))
    assert summary(found) == [
        "Scan of sales: 124 of 2,924 partitions kept, keys of the small side, 31 keys, 72 ms"
    ]


def test_a_statement_that_is_left_alone_has_its_reason_and_what_it_misses() -> None:
    none = CountView()
    would = NarrowingView("p", None, CountView(2_924, 124), none, none, SplitsView())
    left = structs.replace(SALES, predicate=None, would=would, skip_sentence="Shadow mode.")
    assert summary(explained(left, DATES, changed=False, skip="Shadow mode.")) == [
        "Not rewritten: Shadow mode.",
        "Scan of sales: 124 of 2,924 partitions would be kept, keys of dates, 31 keys",
    ]


def test_where_no_scan_is_narrowed_each_fact_has_its_reason() -> None:
    left = scan(skip="No equality.", cause="`s.ds > d.ds` is none")
    assert summary(explained(left, DATES, changed=False)) == [
        "Scan of sales AS s: left alone. No equality. `s.ds > d.ds` is none"
    ]
    assert summary(explained(DATES, changed=False)) == [
        "Not rewritten: it reads no table of which parts could be left out."
    ]
