"""How far views are followed: never in circles, never without end, never by a name that means something else."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from rewriter import (
    VIEW_NESTING_MAX,
    Column,
    KeySet,
    Plan,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.catalog.table_facts import IcebergFacts

Tables = Mapping[str, TableFacts]

LIMITS = RewriteLimits()
ID, DS, G = Column("id", "int"), Column("ds", "string"), Column("g", "int")
FACT = TableFacts((ID, DS), ("ds",))
DIMENSION = TableFacts((DS, G))
HERE = ("spark_catalog", "default")


def fact_view(text: str, *, columns: tuple[Column, ...] = (ID, DS), is_temporary: bool = False) -> TableFacts:
    outputs = tuple(column.name for column in columns)
    return TableFacts(columns, provider="", kind=TableKind.VIEW, view=ViewText(text, HERE, outputs, is_temporary))


def small_view(text: str, *, is_temporary: bool = False) -> TableFacts:
    return fact_view(text, columns=(DS, G), is_temporary=is_temporary)


def rounds(sql: str, tables: Tables) -> Iterator[Plan]:
    """The plans that a session makes, looking up what each of them misses. `tables` are those of its database."""
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    known: dict[TableName, TableFacts | None] = {}
    while True:
        found = plan(statement, known, LIMITS)
        yield found
        if not found.missing:
            return
        qualified = {".".join(HERE) + f".{name}": facts for name, facts in tables.items()}
        known |= {name: (qualified | dict(tables)).get(str(name)) for name in found.missing}


def settled(sql: str, tables: Tables) -> Plan:
    found = list(rounds(sql, tables))
    assert len(found) <= VIEW_NESTING_MAX + 2
    return found[-1]


def skip_of(sql: str, tables: Tables) -> SkipReason | None:
    """Why the first table of the statement was left alone; None if it is narrowed."""
    found = settled(sql, tables)
    answers = {query: KeySet.of(("string",), [("x",)]) for query in found.key_queries}
    return apply(found, answers, LIMITS).scans[0].skip


SQL = "SELECT v.id FROM v JOIN d ON v.ds = d.ds WHERE d.g = 1"
OVER_VIEW = "SELECT f.id FROM f JOIN v ON f.ds = v.ds WHERE v.g = 1"


def chain(length: int, text: str = "SELECT * FROM {next}") -> dict[str, TableFacts]:
    """Views over one another, the first called v, over the table f."""
    names = ["v", *(f"v{i}" for i in range(1, length)), "f"]
    views = {name: fact_view(text.format(next=next_)) for name, next_ in pairwise(names)}
    return {**views, "f": FACT, "d": DIMENSION}


def test_a_chain_of_views_is_followed_up_to_the_limit() -> None:
    assert skip_of(SQL, chain(VIEW_NESTING_MAX)) is None
    assert skip_of(SQL, chain(VIEW_NESTING_MAX + 1)) is SkipReason.NOT_A_PARTITION_COLUMN


@pytest.mark.parametrize("length", [1, 2, 3, VIEW_NESTING_MAX, VIEW_NESTING_MAX + 1])
def test_views_that_run_in_a_circle_are_not_followed_for_ever(length: int) -> None:
    # A catalog that is read while others change it may look like this.
    tables = chain(length)
    last = "v" if length == 1 else f"v{length - 1}"
    tables[last] = fact_view("SELECT * FROM v")
    assert skip_of(SQL, tables) in {SkipReason.VIEW_NOT_FOLLOWED, SkipReason.NOT_A_PARTITION_COLUMN}
    small = {name: small_view(facts.view.text) for name, facts in tables.items() if facts.view is not None}
    assert skip_of(OVER_VIEW, {**small, "f": FACT}) is SkipReason.REDUCER_NOT_A_TABLE


def test_a_view_that_names_another_many_times_asks_it_once() -> None:
    # Without memory this would be 40 to the power of the nesting.
    assert skip_of(SQL, chain(VIEW_NESTING_MAX, " UNION ALL ".join(["SELECT id, ds FROM {next}"] * 40))) is None


def test_views_that_are_nested_as_deep_as_may_be_in_each_of_their_texts_are_followed() -> None:
    nested = "{next}"
    for _ in range(25):
        nested = f"(SELECT id, ds FROM {nested})"
    assert skip_of(SQL, chain(VIEW_NESTING_MAX, f"SELECT id, ds FROM {nested}")) is None


def test_a_view_over_more_tables_than_the_limit_is_not_followed() -> None:
    text = "SELECT id, ds FROM f WHERE id IN (SELECT 1 FROM " + ", ".join(f"t{i}" for i in range(201)) + ")"
    tables = {"v": fact_view(text), "f": FACT, "d": DIMENSION}
    assert skip_of(SQL, tables) is SkipReason.VIEW_NOT_FOLLOWED
    assert skip_of(SQL, tables | {"v": fact_view(text.replace(", t200", ""))}) is SkipReason.VIEW_NOT_FOLLOWED
    assert skip_of(SQL, tables | {"v": fact_view(text.replace(", t200", "").replace(", t199", ""))}) is None


@pytest.mark.parametrize(
    "text",
    [
        'SELECT id, ds FROM f WHERE ds <> "a"',
        "SELECT id, ds FROM f WHERE ds <> 'a\\'b'",
        "SELECT id, ds FROM f WHERE ds <> '${day}'",
        "SELECT id, ds FROM f |> WHERE id > 1",
        "SELECT id, ds FROM f; SELECT 1",
        "SELECT id, ds FROM f WHERE id IN (" + ", ".join(map(str, range(5_000))) + ")",
        "INSERT INTO f SELECT 1, 'a'",
        "FROM WHERE (",
        "",
    ],
)
def test_a_text_that_is_not_certain_is_not_followed(text: str) -> None:
    assert skip_of(SQL, {"v": fact_view(text), "f": FACT, "d": DIMENSION}) is SkipReason.VIEW_NOT_FOLLOWED


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM f TABLESAMPLE (1 ROWS)", "SELECT * FROM f VERSION AS OF 1", "SELECT * FROM f LIMIT 1"],
)
def test_a_view_that_reads_its_table_in_an_unusual_way_is_not_worth_a_filter(text: str) -> None:
    refusals = {SkipReason.NOT_A_PARTITION_COLUMN, SkipReason.VIEW_NOT_FOLLOWED}
    assert skip_of(SQL, {"v": fact_view(text), "f": FACT, "d": DIMENSION}) in refusals


def test_a_column_is_found_by_name_where_the_table_behind_a_star_has_grown() -> None:
    grown = TableFacts((ID, Column("later", "string"), DS), ("ds",))
    assert skip_of(SQL, {"v": fact_view("SELECT * FROM f"), "f": grown, "d": DIMENSION}) is None
    renamed = TableFacts((ID, Column("ds", "string"), Column("p", "string")), ("p",))
    tables = {"v": fact_view("SELECT * FROM f"), "f": renamed, "d": DIMENSION}
    assert skip_of(SQL, tables) is SkipReason.NOT_A_PARTITION_COLUMN


def test_a_column_that_the_view_shows_in_another_type_is_not_worth_a_filter() -> None:
    by_char = TableFacts((ID, Column("ds", "char(5)")), ("ds",))
    tables = {"v": fact_view("SELECT * FROM f"), "f": by_char, "d": DIMENSION}
    assert skip_of(SQL, tables) is SkipReason.NOT_A_PARTITION_COLUMN


def test_a_lasting_view_never_means_a_temporary_view_of_the_session() -> None:
    random = small_view("SELECT ds, g FROM e WHERE rand() < 0.5", is_temporary=True)
    tables = {"v": small_view("SELECT * FROM d"), "f": FACT, "spark_catalog.default.d": DIMENSION, "d": random}
    assert skip_of(OVER_VIEW, tables) is None
    temporary = small_view("SELECT * FROM d", is_temporary=True)
    assert skip_of(OVER_VIEW, {**tables, "v": temporary}) is SkipReason.REDUCER_NOT_A_TABLE
    assert skip_of(OVER_VIEW, {"v": temporary, "f": FACT, "d": DIMENSION}) is None


@pytest.mark.parametrize("namespace", ["global_temp", "SESSION", "system.session"])
def test_a_view_never_means_a_table_where_it_may_mean_a_temporary_view(namespace: str) -> None:
    view = small_view(f"SELECT * FROM {namespace}.d")
    tables = {"v": view, "f": FACT, f"spark_catalog.{namespace}.d": DIMENSION}
    random = small_view("SELECT ds, g FROM e WHERE rand() < 0.5", is_temporary=True)
    assert skip_of(OVER_VIEW, {**tables, f"{namespace}.d": random}) is SkipReason.REDUCER_NOT_A_TABLE


@pytest.mark.parametrize("write", ["INSERT INTO D ", "CREATE OR REPLACE TABLE d AS "])
def test_a_statement_that_writes_a_table_behind_its_views_is_left_alone(write: str) -> None:
    tables = {"v": small_view("SELECT * FROM w"), "w": small_view("SELECT * FROM d"), "f": FACT, "d": DIMENSION}
    assert skip_of(write + OVER_VIEW, tables) is SkipReason.WRITES_WHAT_IT_READS
    assert skip_of(write.replace(" d ", " x ").replace("D", "x") + OVER_VIEW, tables) is None


AT = Column("at", "timestamp")
TIMED = TableFacts((ID, AT), provider="iceberg", indexed_columns=("at",), iceberg=IcebergFacts(1))
MOMENTS = TableFacts((AT, G), full_name=TableName((*HERE, "m")))
ORC = replace(MOMENTS, provider="orc")
IN_HIVE = replace(MOMENTS, provider="hive", converted_format="orc")


@pytest.mark.parametrize(
    ("tables", "reads_orc"),
    [
        pytest.param({"m": MOMENTS}, False, id="parquet"),
        pytest.param({"m": ORC}, True, id="orc"),
        pytest.param({"m": replace(MOMENTS, provider="orc by position")}, True, id="orc-by-position"),
        pytest.param({"m": replace(MOMENTS, provider="hudi")}, True, id="hudi"),
        pytest.param({"m": replace(MOMENTS, provider="iceberg")}, True, id="metadata-of-iceberg"),
        pytest.param({"m": replace(MOMENTS, provider="csv")}, False, id="csv"),
        pytest.param({"m": IN_HIVE}, True, id="hive"),
        pytest.param({"m": replace(IN_HIVE, converted_format="")}, False, id="hive-text"),
        pytest.param(
            {"m": MOMENTS, "f": replace(TIMED, iceberg=IcebergFacts(1, may_hold_orc=True))}, True, id="iceberg"
        ),
        pytest.param({"m": replace(MOMENTS, provider="delta")}, True, id="delta"),
        pytest.param({"m": MOMENTS, "o": ORC}, True, id="third"),
        pytest.param({"m": fact_view("SELECT * FROM n", columns=(AT, G)), "n": ORC}, True, id="view"),
        pytest.param({"m": fact_view("SELECT * FROM n", columns=(AT, G)), "n": MOMENTS}, False, id="parquet-view"),
        pytest.param({"m": MOMENTS, "o": fact_view('SELECT "x" AS k')}, True, id="unread"),
    ],
)
def test_times_are_no_keys_beside_a_table_in_orc(tables: Tables, *, reads_orc: bool) -> None:
    other = " JOIN o ON o.g = m.g" if "o" in tables else ""
    (found,) = [
        scan
        for scan in settled(
            f"SELECT f.id FROM f JOIN m ON f.at = m.at{other} WHERE m.g = 1", {"f": TIMED, **tables}
        ).scans
        if str(scan.reference.name) == "f"
    ]
    assert bool(found.reducers) is not reads_orc
    assert getattr(found.skip, "reason", found.skip) is (SkipReason.TYPE_REFUSED if reads_orc else None)
