"""Snapshots: what is pinned, what is not, and what rests on it."""

from dataclasses import replace

import pytest

from rewriter import (
    Catalog,
    Column,
    IcebergFacts,
    KeySet,
    Plan,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    UnpinnedReason,
    ViewText,
    apply,
    catalog_at_snapshots,
    parse,
    pin_snapshots,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts

SNAPSHOT = 8548337367546804323
WINDOW, STRICT = RewriteLimits(), RewriteLimits(strict=True)

FACT = TableFacts((Column("id", "int"), Column("k", "int"), Column("h", "int")), ("k",))
SMALL = TableFacts(
    (Column("k", "int"), Column("g", "string")),
    provider="iceberg",
    full_name=TableName(("ice", "db", "d")),
    indexed_columns=("k", "g"),
    iceberg=IcebergFacts(SNAPSHOT),
)
OTHER = replace(SMALL, full_name=TableName(("ice", "db", "e")))
LARGE = TableFacts(
    FACT.columns,
    provider="iceberg",
    full_name=TableName(("ice", "db", "large")),
    size_bytes=10**9,
    indexed_columns=("id", "k", "h"),
    iceberg=IcebergFacts(SNAPSHOT),
)
SMALL_SIDES = [
    TableFacts(SMALL.columns),
    TableFacts(SMALL.columns, provider="hive"),
    TableFacts(SMALL.columns, provider="delta", delta=DeltaFacts()),
    SMALL,
]
VIEW = TableFacts(
    SMALL.columns,
    kind=TableKind.VIEW,
    view=ViewText("SELECT k, g FROM d WHERE g = 'a'", ("ice", "db"), ("k", "g")),
)


def name(text: str) -> TableName:
    return TableName(tuple(text.split(".")))


CATALOG: Catalog = {
    name("f"): FACT,
    name("d"): replace(SMALL, size_bytes=1),
    name("D"): replace(SMALL, size_bytes=1),
    name("e"): replace(OTHER, size_bytes=1),
    name("ice.db.d"): replace(SMALL, size_bytes=1),
    name("large"): LARGE,
    name("plain"): TableFacts(SMALL.columns),
    name("empty"): replace(OTHER, iceberg=IcebergFacts(None)),
    name("d.history"): replace(SMALL, full_name=TableName(("ice", "db", "d", "history"))),
    name("v"): VIEW,
    name("hidden"): replace(VIEW, view=None),
    name("gone"): None,
}


def statement(sql: str) -> Statement:
    found = parse(sql, chars_max=10_000)
    assert not isinstance(found, SkipReason)
    return found


def planned(sql: str | Statement, catalog: Catalog = CATALOG, limits: RewriteLimits = WINDOW) -> Plan:
    found = plan(statement(sql) if isinstance(sql, str) else sql, catalog, limits)
    assert not found.missing
    return found


def pinned_text(sql: str, *names: str) -> str | None:
    found = pin_snapshots(statement(sql), {name(each): 7 for each in names or ("d",)})
    assert found is None or found.original == sql
    return found.text if found is not None else None


def planned_pinned(sql: str, limits: RewriteLimits, *names: str) -> Plan:
    """The plan of the statement at the snapshots of these tables."""
    snapshots = {name(each): 7 for each in names or ("d",)}
    found = pin_snapshots(statement(sql), snapshots)
    assert found is not None
    return planned(found, catalog_at_snapshots(CATALOG, snapshots), limits)


def rewritten(found: Plan, limits: RewriteLimits) -> str:
    """The text where every key query answers 3."""
    return apply(found, {query: KeySet(("int",), ((3,),)) for query in found.key_queries}, limits).text


JOINED = "SELECT * FROM f JOIN d ON f.k = d.k WHERE d.g = 'a'"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM f JOIN d ON f.k = d.k", "SELECT * FROM f JOIN d@ ON f.k = d.k"),
        ("SELECT * FROM f, d", "SELECT * FROM f, d@"),
        ("SELECT * FROM f, d AS x", "SELECT * FROM f, d@ AS x"),
        ("SELECT * FROM f, d x", "SELECT * FROM f, d@ x"),
        ("SELECT * FROM f, d/* a */x", "SELECT * FROM f, d@/* a */x"),
        ("SELECT * FROM f, d -- a\nx", "SELECT * FROM f, d@ -- a\nx"),
        ("SELECT * FROM f, `d` `x y`", "SELECT * FROM f, `d`@ `x y`"),
        ("SELECT * FROM f, d AS x(a, b)", "SELECT * FROM f, d@ AS x(a, b)"),
        ("SELECT * FROM (f JOIN d ON TRUE)", "SELECT * FROM (f JOIN d@ ON TRUE)"),
        ("SELECT d.k FROM f, d", "SELECT d.k FROM f, d@"),
        ("SELECT * FROM f, d, d y", "SELECT * FROM f, d@, d@ y"),
        ("SELECT * FROM f, ice.db.d", None),
        ("SELECT * FROM f, D", None),
        (
            "SELECT * FROM f WHERE k IN (SELECT k FROM d) AND EXISTS (SELECT 1 FROM d)",
            "SELECT * FROM f WHERE k IN (SELECT k FROM d@) AND EXISTS (SELECT 1 FROM d@)",
        ),
        ("SELECT k FROM d UNION ALL SELECT k FROM d", "SELECT k FROM d@ UNION ALL SELECT k FROM d@"),
        ("WITH x AS (SELECT * FROM d) SELECT * FROM x, f", "WITH x AS (SELECT * FROM d@) SELECT * FROM x, f"),
        ("SELECT /*+ BROADCAST(d) */ * FROM f, d", "SELECT /*+ BROADCAST(d) */ * FROM f, d@"),
        ("FROM f JOIN d ON f.k = d.k SELECT *", "FROM f JOIN d@ ON f.k = d.k SELECT *"),
        ("INSERT INTO t SELECT f.* FROM f, d", "INSERT INTO t SELECT f.* FROM f, d@"),
        ("CREATE TABLE t AS SELECT f.* FROM f, d", "CREATE TABLE t AS SELECT f.* FROM f, d@"),
        (
            "SELECT * FROM f, d LATERAL VIEW explode(array(1)) y AS z",
            "SELECT * FROM f, d@ LATERAL VIEW explode(array(1)) y AS z",
        ),
        ("SELECT 'd', `ü`.d FROM f, d `ü` -- d", "SELECT 'd', `ü`.d FROM f, d@ `ü` -- d"),
    ],
)
def test_a_version_stands_behind_each_name_of_the_table_and_nowhere_else(sql: str, expected: str | None) -> None:
    assert pinned_text(sql) == (expected.replace("@", " VERSION AS OF 7") if expected is not None else None)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH d AS (SELECT 1 AS k) SELECT * FROM f, d",
        "SELECT * FROM f, (WITH D AS (SELECT 1 AS k) SELECT * FROM d) x, d y",
        "SELECT * FROM f, d VERSION AS OF 3",
        "SELECT * FROM f, d TIMESTAMP AS OF '2026-01-01'",
        "SELECT * FROM f, d TABLESAMPLE (10 PERCENT)",
        "SELECT * FROM f, x.d",
    ],
)
def test_what_is_no_plain_reference_to_the_table_stays_as_it_is(sql: str) -> None:
    assert pinned_text(sql) is None


@pytest.mark.parametrize("alias", ["x", "L", "e3", "_", "D", "BD"])
def test_a_version_that_would_run_into_the_alias_is_not_taken(alias: str) -> None:
    assert pinned_text(f"SELECT * FROM f, `d`{alias}") is None


def test_several_tables_are_pinned_in_one_statement_each_at_its_own_snapshot() -> None:
    found = pin_snapshots(statement("SELECT * FROM e, f, d"), {name("d"): 123, name("e"): 7, name("x"): 1})
    assert found is not None
    assert found.text == "SELECT * FROM e VERSION AS OF 7, f, d VERSION AS OF 123"


def test_the_key_query_and_the_statement_name_the_same_snapshot() -> None:
    found = planned_pinned(JOINED, WINDOW)
    (query,) = found.key_queries
    assert " FROM d VERSION AS OF 7 WHERE 'starpruner' IS NOT NULL AND (d.g = 'a')" in query.sql
    assert rewritten(found, WINDOW) == (
        "SELECT * FROM (SELECT * FROM f WHERE (`k` IN (3) OR typeof(`k`) <> 'int')) AS f"
        " JOIN d VERSION AS OF 7 ON f.k = d.k WHERE d.g = 'a'"
    )


def test_a_narrowed_scan_encloses_the_version_and_leaves_the_alias_outside() -> None:
    sql = "SELECT * FROM large {}JOIN d ON {}.k = d.k WHERE d.g = 'a'"
    scan = "(SELECT * FROM large VERSION AS OF 7 WHERE (`k` IN (3) OR typeof(`k`) <> 'int'))"
    for alias, said in (("", " AS large "), ("AS l ", " AS l ")):
        block = alias.removeprefix("AS ").strip() or "large"
        text = rewritten(planned_pinned(sql.format(alias, block), WINDOW, "large"), WINDOW)
        assert text.startswith(f"SELECT * FROM {scan}{said}JOIN d ON ")


def test_a_statement_that_is_not_narrowed_goes_on_unpinned() -> None:
    found = planned_pinned(JOINED, WINDOW)
    assert apply(found, {}, WINDOW).text == JOINED
    assert apply(found, {}, replace(WINDOW, predicate_chars_max=0)).text == JOINED


def test_what_is_read_at_a_snapshot_cannot_change_and_nothing_else() -> None:
    two = "SELECT * FROM f WHERE k IN (SELECT d.k FROM d JOIN e ON d.k = e.k WHERE d.g = 'a')"
    (query,) = planned(two).key_queries
    assert query.tables == {name("d"), name("e")}
    (query,) = planned_pinned(two, WINDOW, "d").key_queries
    assert query.tables == {name("e")}
    (query,) = planned_pinned(two, WINDOW, "d", "e").key_queries
    assert query.tables == frozenset()


def test_a_filter_by_another_table_counts_until_that_is_pinned_too() -> None:
    sql = f"{JOINED} AND d.k > (SELECT max(k) FROM e)"
    (query,) = planned_pinned(sql, WINDOW, "d").key_queries
    assert query.tables == {name("e")}


@pytest.mark.parametrize(
    ("facts", "version", "tables"),
    [
        (SMALL, "VERSION AS OF 3", set()),
        (SMALL, "FOR VERSION AS OF 3", set()),
        (SMALL, "VERSION AS OF 'main'", {"VERSION AS OF 'main'"}),
        (SMALL, "TIMESTAMP AS OF '2026-01-01 12:00:00.5'", {"TIMESTAMP AS OF '2026-01-01 12:00:00.5'"}),
        (SMALL, "FOR SYSTEM_TIME AS OF '2026-01-01'", {"TIMESTAMP AS OF '2026-01-01'"}),
        (SMALL, "TIMESTAMP AS OF 3", {"TIMESTAMP AS OF 3"}),
        # A table of another kind counts its versions, and has the same ones when it is made again.
        (replace(SMALL, iceberg=None), "VERSION AS OF 3", {"VERSION AS OF 3"}),
        # What Iceberg tells of a table is not fixed with the table.
        (CATALOG[name("d.history")], "VERSION AS OF 3", {"VERSION AS OF 3"}),
    ],
)
def test_a_version_of_the_clients_own_is_kept_and_counts_as_pinned_where_it_is_a_snapshot(
    facts: TableFacts, version: str, tables: set[str]
) -> None:
    sql = f"SELECT * FROM f JOIN d {version} AS x ON f.k = x.k WHERE x.g = 'a'"
    versions = [TableName(("d",), each) for each in tables] or [name("d").at(3)]
    found = planned(sql, {**CATALOG, **dict.fromkeys(versions, facts)})
    (query,) = found.key_queries
    assert f" FROM d {version} AS x WHERE 'starpruner' IS NOT NULL AND (x.g = 'a')" in query.sql
    assert query.tables == {TableName(("d",), each) for each in tables}
    assert rewritten(found, WINDOW).endswith(f" AS f JOIN d {version} AS x ON f.k = x.k WHERE x.g = 'a'")
    assert not found.pinnable


@pytest.mark.parametrize(
    "version",
    [
        "TIMESTAMP AS OF now()",
        "TIMESTAMP AS OF current_date()",
        "TIMESTAMP AS OF TIMESTAMP'2026-01-01 00:00:00'",
        "TIMESTAMP AS OF '12:30'",
        "TIMESTAMP AS OF 'now'",
        "TIMESTAMP AS OF (SELECT max(t) FROM e)",
        "VERSION AS OF 3L",
        "VERSION AS OF -3",
        "VERSION AS OF 'a''b'",
        "VERSION AS OF 'a' 'b'",
    ],
)
def test_a_version_that_is_computed_or_unusual_is_refused(version: str) -> None:
    for sql in (
        f"SELECT * FROM f JOIN d {version} AS x ON f.k = x.k WHERE x.g = 'a'",
        f"SELECT * FROM f WHERE k IN (SELECT x.k FROM d {version} AS x WHERE x.g = 'a')",
        f"SELECT * FROM large {version} AS f JOIN d ON f.k = d.k WHERE d.g = 'a'",
    ):
        found = planned(sql)
        assert not found.key_queries
        assert SkipReason.UNSUPPORTED_REFERENCE in {scan.skip for scan in found.scans}


def test_a_version_is_described_by_itself_for_it_may_have_other_columns() -> None:
    sql = "SELECT * FROM f WHERE EXISTS (SELECT 1 FROM d VERSION AS OF 3 WHERE d.k = h AND d.g = 'a')"
    then = name("d").at(3)
    assert plan(statement(sql), CATALOG, WINDOW).missing == {then}
    assert then.sql == "`d` VERSION AS OF 3"
    # Where the version has a column `h`, the name is not the fact's.
    fact = {name("f"): replace(FACT, partition_columns=("h",))}
    wider = replace(SMALL, columns=(*SMALL.columns, Column("h", "int")))
    assert planned(sql, {**CATALOG, **fact, then: SMALL}).key_queries
    assert not planned(sql, {**CATALOG, **fact, then: wider}).key_queries
    assert not planned(sql, {**CATALOG, **fact, then: None}).key_queries


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (JOINED, {"d"}),
        ("SELECT * FROM f JOIN (SELECT * FROM d WHERE g = 'a') x ON f.k = x.k", {"d"}),
        (f"{JOINED} AND d.k > (SELECT max(k) FROM e)", {"d", "e"}),
        # What no key query reads is read as it is.
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN e WHERE d.g = 'a'", {"d"}),
        ("SELECT * FROM f JOIN d ON f.k < d.k", set()),
        # A table of two names could be looked up at two snapshots.
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN ice.db.d x JOIN D y WHERE d.g = 'a'", set()),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN d y WHERE d.g = 'a'", {"d"}),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN ice.db.d TABLESAMPLE (1 ROWS) x WHERE d.g = 'a'", set()),
        ("SELECT * FROM f JOIN d ON f.k = d.k WHERE d.g = 'a' AND f.id IN (FROM d |> SELECT k)", None),
        (
            "SELECT * FROM f JOIN d ON f.k = d.k, (SELECT * FROM d PIVOT (max(k) FOR g IN ('a'))) WHERE d.g = 'a'",
            set(),
        ),
        (
            "SELECT * FROM f JOIN ice.db.d x ON f.k = x.k, (WITH d AS (SELECT 1) SELECT * FROM d) WHERE x.g = 'a'",
            set(),
        ),
        # A view reads the table as it is now.
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN v WHERE d.g = 'a'", set()),
        ("SELECT * FROM f JOIN ice.db.d x ON f.k = x.k JOIN v WHERE x.g = 'a'", set()),
        ("SELECT * FROM f JOIN e ON f.k = e.k JOIN v WHERE e.g = 'a'", {"e"}),
        ("SELECT * FROM f JOIN v ON f.k = v.k", set()),
        # And so may what is not known.
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN hidden WHERE d.g = 'a'", set()),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN gone WHERE d.g = 'a'", set()),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN rows_of(1) WHERE d.g = 'a'", set()),
        # A snapshot that the client names, of the same table or of another, is a table of its own.
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN e VERSION AS OF 3 WHERE d.g = 'a'", {"d"}),
        ("SELECT * FROM f JOIN plain ON f.k = plain.k WHERE plain.g = 'a'", set()),
        ("SELECT * FROM f JOIN empty ON f.k = empty.k WHERE empty.g = 'a'", set()),
        ("SELECT * FROM f JOIN d.history x ON f.k = x.k WHERE x.g = 'a'", set()),
        ("SELECT /*+ BROADCAST(x) */ * FROM f JOIN d x ON f.k = x.k WHERE x.g = 'a'", {"d"}),
        # What writes is not run again, should the snapshot be expired meanwhile.
        ("INSERT INTO t SELECT f.* FROM f JOIN d ON f.k = d.k WHERE d.g = 'a'", set()),
    ],
)
def test_a_table_that_keys_are_read_from_is_pinned_wherever_the_statement_reads_it_or_nowhere(
    sql: str, names: set[str] | None
) -> None:
    catalog = {**CATALOG, name("e").at(3): OTHER, name("ice.db.d"): CATALOG[name("d")]}
    found = parse(sql, chars_max=10_000)
    if names is None:
        assert isinstance(found, SkipReason)
        return
    assert isinstance(found, Statement)
    assert planned(found, catalog).pinnable == set(map(name, names))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (JOINED, {}),
        ("SELECT * FROM f JOIN plain ON f.k = plain.k WHERE plain.g = 'a'", {}),
        (f"INSERT INTO t {JOINED}", {"d": UnpinnedReason.STATEMENT_WRITES}),
        ("SELECT * FROM f JOIN empty ON f.k = empty.k WHERE empty.g = 'a'", {"empty": UnpinnedReason.NO_SNAPSHOT}),
        (
            "SELECT * FROM f JOIN d.history x ON f.k = x.k WHERE x.g = 'a'",
            {"d.history": UnpinnedReason.NOT_THE_TABLE},
        ),
        ("SELECT * FROM f JOIN d.tag_a x ON f.k = x.k WHERE x.g = 'a'", {"d.tag_a": UnpinnedReason.NOT_THE_TABLE}),
        (f"{JOINED} AND EXISTS (SELECT 1 FROM gone)", {"d": UnpinnedReason.UNKNOWN_BESIDE_IT}),
        (f"{JOINED} AND looked_up(f.h)", {"d": UnpinnedReason.UNKNOWN_BESIDE_IT}),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN v WHERE d.g = 'a'", {"d": UnpinnedReason.VIEW_READS_IT}),
        ("SELECT * FROM f JOIN v ON f.k = v.k WHERE v.g = 'a'", {"ice.db.d": UnpinnedReason.VIEW_READS_IT}),
        (
            "SELECT /*+ BROADCAST(d) */ * FROM f JOIN d ON f.k = d.k WHERE d.g = 'a'",
            {"d": UnpinnedReason.HINT_NEEDS_ALIAS},
        ),
        (
            "SELECT * FROM f JOIN d ON f.k = d.k JOIN d TABLESAMPLE (1 ROWS) x WHERE d.g = 'a'",
            {"d": UnpinnedReason.TAKES_NO_VERSION},
        ),
        ("SELECT * FROM f JOIN d ON f.k = d.k JOIN D y WHERE d.g = 'a'", {"d": UnpinnedReason.TWO_NAMES}),
        # Here the key query reads the table behind the view too, and `e`, which can be read at one.
        (
            f"{JOINED} AND d.k > (SELECT max(e.k) FROM e JOIN v)",
            {"d": UnpinnedReason.VIEW_READS_IT, "ice.db.d": UnpinnedReason.VIEW_READS_IT},
        ),
    ],
)
def test_a_table_that_keys_are_read_from_as_it_is_has_a_reason(
    sql: str, expected: dict[str, UnpinnedReason]
) -> None:
    found = planned(sql, {**CATALOG, name("d.tag_a"): replace(SMALL, iceberg=None)})
    assert found.unpinned == {name(each): why for each, why in expected.items()}


@pytest.mark.parametrize("version", ["VERSION AS OF 'main'", "TIMESTAMP AS OF '2026-01-01'"])
def test_a_version_that_may_come_to_mean_another_snapshot_is_said_to_be_one(version: str) -> None:
    versioned = TableName(("d",), version)
    sql = f"SELECT * FROM f JOIN d {version} AS x ON f.k = x.k WHERE x.g = 'a'"
    assert planned(sql, {**CATALOG, versioned: SMALL}).unpinned == {versioned: UnpinnedReason.VERSION_CAN_MOVE}


def test_strict_keys_of_a_snapshot_need_no_check_and_without_one_there_are_none() -> None:
    assert planned(JOINED, limits=STRICT).pinnable == {name("d")}
    assert not planned(JOINED, limits=STRICT).key_queries
    assert rewritten(planned_pinned(JOINED, STRICT), STRICT) == rewritten(planned_pinned(JOINED, WINDOW), WINDOW)


def test_strict_a_fact_is_narrowed_by_keys_of_snapshots_alone() -> None:
    sql = "SELECT * FROM large JOIN d ON large.k = d.k JOIN plain e ON large.h = e.k WHERE d.g = 'a' AND e.g = 'a'"
    assert len(planned(sql).key_queries) == 2
    found = planned(sql, limits=STRICT)
    assert not found.key_queries
    assert {scan.skip for scan in found.scans} >= {SkipReason.STRICT_KEYS}
    assert found.pinnable == {name("d")}
    half = planned_pinned(sql, STRICT, "d")
    assert [query.tables for query in half.key_queries] == [frozenset()]
    assert "`h`" not in rewritten(half, STRICT)
    assert "`k` IN (3)" in rewritten(half, STRICT)
    assert "raise_error" not in rewritten(half, STRICT)
    whole = rewritten(planned_pinned(sql.replace("plain e", "e"), STRICT, "d", "e"), STRICT)
    assert "`h` IN (3)" in whole
    assert "`k` IN (3)" in whole


OF_D = "SELECT f.id FROM f JOIN d VERSION AS OF 3 x ON f.k = x.k WHERE x.g = 'a'"


@pytest.mark.parametrize(
    "sql", [OF_D, f"INSERT INTO w {OF_D}", f"CREATE TABLE w AS {OF_D}", f"INSERT OVERWRITE DIRECTORY '/w' {OF_D}"]
)
def test_strict_any_statement_is_narrowed_by_keys_of_a_snapshot_that_it_names(sql: str) -> None:
    found = planned(sql, {**CATALOG, name("d").at(3): SMALL}, STRICT)
    assert "`k` IN (3)" in rewritten(found, STRICT)


@pytest.mark.parametrize("facts", SMALL_SIDES, ids=lambda facts: facts.provider)
def test_strict_keys_of_a_table_that_may_change_are_not_used(facts: TableFacts) -> None:
    catalog = {**CATALOG, name("d"): facts}
    assert planned(JOINED, catalog).key_queries
    found = planned(JOINED, catalog, STRICT)
    assert not found.key_queries
    assert found.scans[0].skip is SkipReason.STRICT_KEYS


def test_strict_literals_are_keys_that_cannot_change() -> None:
    sql = "SELECT f.id FROM f JOIN (VALUES (3), (4)) AS x(k) ON f.k = x.k"
    assert planned(sql, limits=STRICT).key_queries == planned(sql).key_queries != ()


def test_a_view_that_reads_a_table_keeps_what_it_reads_among_what_may_change() -> None:
    sql = "SELECT * FROM f WHERE k IN (SELECT d.k FROM d JOIN v ON d.k = v.k WHERE d.g = 'a')"
    (query,) = planned_pinned(sql, WINDOW, "d").key_queries
    assert query.tables == {name("v"), name("ice.db.d")}


def test_a_view_at_a_snapshot_of_a_table_is_still_what_its_maker_may_change() -> None:
    view = replace(VIEW, view=ViewText("SELECT k, g FROM d VERSION AS OF 3", ("ice", "db"), ("k", "g")))
    catalog = {**CATALOG, name("v"): view, name("ice.db.d").at(3): SMALL}
    (query,) = planned("SELECT * FROM f JOIN v ON f.k = v.k WHERE v.g = 'a'", catalog).key_queries
    assert query.tables == {name("v")}
