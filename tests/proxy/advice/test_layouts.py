"""Layouts made of a sample, what they spare recorded statements, and the commands that make them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from proxy.advice.commands import commands, notes, shown_name
from proxy.advice.forecast import TableForecasts, table_forecasts
from proxy.advice.layouts import Layout, LayoutKind
from proxy.advice.needed_rows import NeededRows, RowFilter
from proxy.advice.recorded import RecordedStatement
from proxy.advice.table_sample import TableSample
from rewriter import Column, KeySet, SkipReason, TableFacts, TableName
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.domains.cover import Cover
from rewriter.files.file_index import Bounds, FileFacts

# Rows are of a hundred bytes, and files of a layout of a hundred rows.
ROW_BYTES = 100
FILE_BYTES = 100 * ROW_BYTES
ROWS = 1_000
STATEMENT = RecordedStatement("f1", "shop", "SELECT 1", runs=3, seconds=9.0, last_id="s1")


def sample_of(
    values: Sequence[int | None],
    *,
    files: int = 10,
    partitions: Sequence[int] = (),
    indexed: bool = False,
    delta: bool = False,
) -> TableSample:
    """A table with a column x, cut into files in the order of its rows; and with a partition column p."""
    names = ("p", "x") if partitions else ("x",)
    facts = TableFacts(
        tuple(Column(name, "int") for name in ("x", *names[:-1])),
        names[:-1],
        full_name=TableName(("spark_catalog", "shop", "clicks")),
        indexed_columns=("x",) if indexed or delta else (),
        delta=DeltaFacts(names[:-1]) if delta else None,
    )
    rows = [(partitions[n % len(partitions)], x) if partitions else (x,) for n, x in enumerate(values)]
    rows.sort(key=lambda row: row[0] or 0) if partitions else None
    step = len(rows) // files
    found = tuple(_file(names, rows[start : start + step], start) for start in range(0, len(rows), step))
    columns = tuple(Column(name, "int") for name in names)
    return TableSample(
        facts, len(partitions) or 1, files, len(rows) * ROW_BYTES, len(rows), columns, found, tuple(rows)
    )


def _file(names: Sequence[str], rows: Sequence[tuple[int | None, ...]], number: int) -> FileFacts:
    bounds = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        known = [value for value in values if value is not None]
        bounds[name] = Bounds(min(known, default=None), max(known, default=None), len(values) - len(known))
    return FileFacts(f"file:/t/part-{number}.parquet", len(rows) * ROW_BYTES, 1, len(rows), bounds, ())


def needing(*keys: int, today: bool = False) -> NeededRows:
    """A scan that is joined on x with a small side of these keys."""
    found = KeySet.of(("int",), [(key,) for key in keys])
    joined = RowFilter(("x",), found.cover(["x"]), "c.x = d.x", len(keys))
    skip = None if today else SkipReason.NOT_A_PARTITION_COLUMN
    table = TableName(("spark_catalog", "shop", "clicks"))
    return NeededRows(STATEMENT, table, (joined,) if today else (), (joined,), Cover.all(), skip)


def forecasts(sample: TableSample, *needed: NeededRows, hint_chars_max: int = 100_000) -> TableForecasts:
    return table_forecasts(sample, needed, file_bytes=FILE_BYTES, hint_chars_max=hint_chars_max)


def shuffled(count: int = ROWS) -> list[int]:
    """The numbers up to a count, each file with some from everywhere."""
    return [number * 379 % count for number in range(count)]


def test_files_in_order_are_only_indexed() -> None:
    best = forecasts(sample_of(range(ROWS)), needing(5, 7)).best
    assert (best.layout.kind, best.layout.column) == (LayoutKind.AS_IT_LIES, None)
    (scan,) = best.scans
    assert scan.share_today == pytest.approx(1)
    assert scan.share_then == pytest.approx(0.1)
    assert best.spared_bytes == pytest.approx(0.9 * ROWS * ROW_BYTES * STATEMENT.runs)


def test_values_from_everywhere_in_each_file_want_ranges() -> None:
    found = forecasts(sample_of(shuffled()), needing(5, 7))
    assert found.best.layout.kind is LayoutKind.RANGES
    assert found.best.layout.file_count == 10
    assert found.best.scans[0].share_then == pytest.approx(0.1)


def test_few_values_want_partitions_where_there_are_none() -> None:
    best = forecasts(sample_of([number % 5 for number in range(ROWS)]), needing(3)).best
    assert best.layout.kind is LayoutKind.PARTITIONS
    assert best.scans[0].share_then == pytest.approx(0.2)


def test_frequent_values_want_files_of_their_own_in_a_partitioned_table() -> None:
    values = [number % 3 if number % 10 < 9 else 100 + number for number in range(ROWS)]
    best = forecasts(sample_of(values, partitions=(1, 2)), needing(1)).best
    assert best.layout.kind is LayoutKind.FREQUENT_VALUES
    assert best.scans[0].share_then == pytest.approx(0.3, abs=0.02)


def test_a_column_that_is_indexed_already_is_not_proposed_again() -> None:
    best = forecasts(sample_of(range(ROWS), indexed=True), needing(5, today=True)).best
    assert best.spared_bytes == 0
    assert not best.is_worth_it


def test_keys_from_everywhere_spare_nothing() -> None:
    best = forecasts(sample_of(shuffled()), needing(*range(0, ROWS, 10))).best
    assert not best.is_worth_it


def test_no_key_at_all_needs_no_file() -> None:
    assert forecasts(sample_of(shuffled()), needing()).best.scans[0].share_then == 0


def test_a_file_reaches_out_to_the_sampled_rows_beside_it() -> None:
    """A row that is not in the sample may lie between the last row of one file and the first of the next."""
    sample = sample_of([number * 2 for number in shuffled()])
    best = forecasts(sample, needing(199)).best
    assert best.layout.kind is LayoutKind.RANGES
    assert best.scans[0].share_then == pytest.approx(0.2)


def test_files_of_nulls_alone_are_read_as_the_index_has_no_bounds_of_them() -> None:
    values = [None if number % 4 == 0 else number * 379 % ROWS for number in range(ROWS)]
    best = forecasts(sample_of(values), needing(501)).best
    assert best.layout.kind is LayoutKind.RANGES
    assert best.scans[0].share_then == pytest.approx(0.3)


def test_where_a_list_cannot_name_all_files_fewer_files_are_proposed() -> None:
    sample = sample_of(range(ROWS), files=100)
    whole = forecasts(sample, needing(5)).best
    short = forecasts(sample, needing(5), hint_chars_max=2_000).best
    assert whole.scans[0].share_then == pytest.approx(0.01)
    assert (whole.layout.kind, short.layout.kind) == (LayoutKind.AS_IT_LIES, LayoutKind.RANGES)


def test_one_statement_that_gains_does_not_hide_what_others_read() -> None:
    """A tenth of all bytes that statements read of the table has to be spared."""
    others = [needing(*range(0, ROWS, 50)) for _ in range(20)]
    found = forecasts(sample_of(range(ROWS)), needing(5), *others)
    assert len(found.best.helped) == 1
    assert not found.best.is_worth_it


def test_values_from_everywhere_in_a_delta_table_want_clustering() -> None:
    for partitions in ((), (1, 2)):
        found = forecasts(sample_of(shuffled(), partitions=partitions, delta=True), needing(500, 502, today=True))
        assert (found.best.layout.kind, found.best.layout.column) == (LayoutKind.CLUSTERED, "x")
        assert found.best.scans[0].share_today == pytest.approx(1)
        assert found.best.scans[0].share_then <= 0.2
        assert [column for column, _ in found.by_column] == ["x"]


def test_a_delta_table_in_order_is_left_as_it_lies() -> None:
    best = forecasts(sample_of(range(ROWS), delta=True), needing(5, 7, today=True)).best
    assert best.scans[0].share_today == pytest.approx(0.1)
    assert not best.is_worth_it
    # Smaller files in the same order would spare a half of what is read, but hardly more of the table.
    sample = sample_of(range(ROWS), delta=True)
    best = table_forecasts(sample, [needing(5, today=True)], file_bytes=FILE_BYTES // 3, hint_chars_max=0).best
    assert not best.is_worth_it


def test_clustering_loses_the_order_by_which_others_are_spared_files() -> None:
    sample, day = sample_of(shuffled(), delta=True), Column("day", "int")
    files = [replace(file, bounds={**file.bounds, "day": Bounds(n, n, 0)}) for n, file in enumerate(sample.files)]
    facts = replace(sample.facts, columns=(day, *sample.facts.columns), indexed_columns=("day", "x"))
    rows = tuple((n * 10 // ROWS, *row) for n, row in enumerate(sample.rows))
    sample = replace(sample, facts=facts, columns=(day, *sample.columns), files=tuple(files), rows=rows)
    by_day = RowFilter(("day",), KeySet.of(("int",), [(3,)]).cover(["day"]), "c.day = d.k", 1)
    of_day = replace(needing(), today=(by_day,), possible=(by_day,))
    found = dict(forecasts(sample, needing(500, today=True), of_day).by_column)["x"]
    assert [scan.share_today for scan in found.scans] == pytest.approx([1, 0.1])
    assert not found.is_worth_it


def layout_of(kind: LayoutKind) -> Layout:
    sample = sample_of(shuffled())
    index = forecasts(sample, needing(1)).best.layout.index
    column = None if kind is LayoutKind.AS_IT_LIES else "x"
    return Layout(kind, column, index, file_count=24, share_min=0.05)


INDEX_IT = "starpruner pipeline index --table shop.clicks --index ops.files"
LOAD_IT = (
    "starpruner pipeline load --table shop.clicks --query 'SELECT * FROM shop.clicks' --skewed-by x"
    " --min-share 0.05 --mode overwrite --file-size 10000 --index ops.files"
)
BY_X = "PARTITIONED BY (x) AS SELECT /*+ REPARTITION(x) */ * FROM shop.clicks"
IN_RANGES = "PARTITIONED BY (p) AS SELECT /*+ REPARTITION_BY_RANGE(24, p, x) */ * FROM shop.clicks"
RENAMED = [
    "ALTER TABLE shop.clicks RENAME TO shop.clicks_before",
    "ALTER TABLE shop.clicks_laid_out RENAME TO shop.clicks",
]


SIZED = "SET spark.databricks.delta.optimize.maxFileSize = 10000"


@pytest.mark.parametrize(
    ("kind", "partitions", "expected"),
    [
        (LayoutKind.AS_IT_LIES, (), [INDEX_IT]),
        (LayoutKind.FREQUENT_VALUES, (1, 2), [LOAD_IT]),
        (LayoutKind.PARTITIONS, (), [f"CREATE TABLE shop.clicks_laid_out USING parquet {BY_X}", *RENAMED]),
        (
            LayoutKind.RANGES,
            (1, 2),
            [f"CREATE TABLE shop.clicks_laid_out USING parquet {IN_RANGES}", *RENAMED, INDEX_IT],
        ),
        (
            LayoutKind.CLUSTERED,
            (),
            [SIZED, "ALTER TABLE shop.clicks CLUSTER BY (x)", "OPTIMIZE shop.clicks FULL"],
        ),
        (LayoutKind.CLUSTERED, (1, 2), [SIZED, "OPTIMIZE shop.clicks ZORDER BY (x)"]),
    ],
)
def test_the_commands_of_a_layout(kind: LayoutKind, partitions: tuple[int, ...], expected: list[str]) -> None:
    sample = sample_of(shuffled(), partitions=partitions)
    assert [one.text for one in commands(sample, layout_of(kind), "ops.files", FILE_BYTES)] == expected
    assert notes(sample, layout_of(kind), "ops.files")


def test_names_are_quoted_where_they_need_it() -> None:
    assert shown_name(TableName(("spark_catalog", "my shop", "a`b"))) == "`my shop`.`a``b`"
    assert shown_name(TableName(("ice", "shop", "clicks"))) == "ice.shop.clicks"
