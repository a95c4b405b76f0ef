"""The sample star schema: `sales`, partitioned by day and region, with `dates`, `stores` and `products`.

Spark itself makes it, by SQL through the server, so it loads the same on every Java that the server runs on.
Every value is computed from its row's number: all machines get the same data.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path

from pyhive import hive

from demo.hive import run
from demo.progress import Progress

# To be raised when the tables change; a sample of another version on disk is then loaded anew.
SAMPLE_VERSION = 1

REGIONS = ("north", "south", "east", "west")
LAST_DAY = date(2024, 12, 31)
# Two years of days in four regions are 2,924 partitions: they load in about a minute on two cores, three quarters
# of it writing files, and listing them takes Spark seconds. Most of the writing goes into the processes by which
# Hadoop, without its native library, sets the permissions of each file.
DAYS_DEFAULT = 731
ROWS_PER_PARTITION = 40
# One INSERT writes a quarter of a year: few enough statements to lose no time, enough to show progress.
DAYS_PER_INSERT = 92

STATE_FILE = "sample.json"
MADE_BY_SPARK = ("metastore_db", "warehouse")


class SampleError(Exception):
    """The directory cannot hold the sample."""


@dataclass(frozen=True)
class Sample:
    """The size of a sample; two samples with the same fields are the same to the last row."""

    days: int = DAYS_DEFAULT
    version: int = SAMPLE_VERSION

    @property
    def first_day(self) -> date:
        """The sample ends with 2024, however short it is, so that the same queries find rows."""
        return LAST_DAY - timedelta(days=self.days - 1)

    @property
    def partitions(self) -> int:
        """The number of partitions of `sales`."""
        return self.days * len(REGIONS)


def is_loaded(directory: Path, sample: Sample) -> bool:
    """Tells whether the directory holds the finished sample."""
    return _state(directory) == {"finished": True, **asdict(sample)}


def clear_unfinished(directory: Path, sample: Sample) -> None:
    """Removes a half-loaded or another version's sample; the server must not be running yet."""
    left_over = [directory / name for name in MADE_BY_SPARK if (directory / name).exists()]
    if is_loaded(directory, sample) or not left_over:
        return
    if _state(directory) is None:
        raise SampleError(
            f"{directory} holds tables that the demo did not make ({', '.join(map(str, left_over))}); "
            f"pass another --dir"
        )
    for path in left_over:
        shutil.rmtree(path)
    # The state file goes last: until then it says that the remaining tables are the demo's.
    (directory / STATE_FILE).unlink()


def load(connection: hive.Connection, directory: Path, sample: Sample, progress: Progress) -> None:
    """Makes the tables, and marks the directory once they are complete."""
    _write_state(directory, sample, finished=False)
    for table, sql in _dimensions(sample).items():
        progress(f"Loading {table}")
        run(connection, sql)
    run(connection, SALES_TABLE)
    for first in range(0, sample.days, DAYS_PER_INSERT):
        progress(f"Loading sales, {first * len(REGIONS):,} of {sample.partitions:,} partitions done")
        run(connection, _insert_sales(sample, first, min(DAYS_PER_INSERT, sample.days - first)))
    _write_state(directory, sample, finished=True)


SALES_TABLE = """
CREATE TABLE sales (
  sale_id BIGINT, store_id INT, product_id INT, quantity INT, amount DECIMAL(10, 2), ds STRING, region STRING
) USING parquet PARTITIONED BY (ds, region)"""


def _insert_sales(sample: Sample, first: int, days: int) -> str:
    """Some days of sales, each partition written by one task as one file."""
    rows_per_day = ROWS_PER_PARTITION * len(REGIONS)
    return f"""
INSERT INTO sales
SELECT /*+ REPARTITION(ds, region) */
  id AS sale_id,
  -- Stores are numbered so that store_id modulo the number of regions is the store's region.
  CAST(pmod(xxhash64(id, 1), 10) * {len(REGIONS)} + region_number AS INT) AS store_id,
  CAST(pmod(xxhash64(id, 2), 50) AS INT) AS product_id,
  quantity,
  CAST(quantity * (100 + pmod(xxhash64(id, 4), 9900)) / 100 AS DECIMAL(10, 2)) AS amount,
  CAST(date_add(DATE'{sample.first_day}', day) AS STRING) AS ds,
  element_at({_array(REGIONS)}, region_number + 1) AS region
FROM (
  SELECT id,
    CAST(id DIV {rows_per_day} AS INT) AS day,
    CAST(id DIV {ROWS_PER_PARTITION} % {len(REGIONS)} AS INT) AS region_number,
    CAST(1 + pmod(xxhash64(id, 3), 5) AS INT) AS quantity
  FROM range({first * rows_per_day}, {(first + days) * rows_per_day})
)"""


def _dimensions(sample: Sample) -> dict[str, str]:
    """The small tables; dates and stores share a key column of the same type with sales."""
    return {
        "dates": f"""
CREATE TABLE dates USING parquet AS
SELECT
  CAST(day AS STRING) AS ds, year(day) AS year, quarter(day) AS quarter, month(day) AS month,
  date_format(day, 'EEEE') AS weekday,
  CASE date_format(day, 'MM-dd')
    WHEN '01-01' THEN 'New Year' WHEN '02-14' THEN 'Valentine' WHEN '05-01' THEN 'May Day'
    WHEN '10-31' THEN 'Halloween' WHEN '11-29' THEN 'Black Friday' WHEN '12-24' THEN 'Christmas Eve'
    WHEN '12-31' THEN 'New Year''s Eve'
  END AS holiday
FROM (SELECT explode(sequence(DATE'{sample.first_day}', DATE'{LAST_DAY}')) AS day)""",
        "stores": f"""
CREATE TABLE stores USING parquet AS
SELECT
  CAST(id AS INT) AS store_id,
  element_at({_array(REGIONS)}, CAST(id % {len(REGIONS)} AS INT) + 1) AS region,
  element_at({_array(CITIES)}, CAST(id % {len(CITIES)} AS INT) + 1) AS city
FROM range(40)""",
        "products": f"""
CREATE TABLE products USING parquet AS
SELECT
  CAST(id AS INT) AS product_id,
  concat('product ', id) AS name,
  element_at({_array(CATEGORIES)}, CAST(id % {len(CATEGORIES)} AS INT) + 1) AS category
FROM range(50)""",
    }


# Eight cities over four regions: each city lies in one region.
CITIES = ("Oslo", "Lisbon", "Vienna", "Bristol", "Tromsø", "Sevilla", "Kraków", "Nantes")
CATEGORIES = ("books", "toys", "garden", "kitchen", "music")


def _array(words: tuple[str, ...]) -> str:
    quoted = ", ".join(f"'{word}'" for word in words)
    return f"array({quoted})"


def _state(directory: Path) -> object:
    """The sample's state file; None if the demo never loaded anything into the directory."""
    try:
        return json.loads((directory / STATE_FILE).read_text())
    except FileNotFoundError:
        return None


def _write_state(directory: Path, sample: Sample, *, finished: bool) -> None:
    state = {"finished": finished, **asdict(sample)}
    # The file is replaced in one step: a reader sees the old state or the new one.
    temporary = directory / f"{STATE_FILE}.new"
    temporary.write_text(json.dumps(state))
    temporary.replace(directory / STATE_FILE)
