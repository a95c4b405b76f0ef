"""TPC-DS: data and the 99 queries as DuckDB's extension makes them, loaded from its wheel without a network."""

import re
from importlib.util import find_spec
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection
from star_benchmark import StarBenchmark

# The smallest scale at which seven in ten queries find rows; a larger one finds them for hardly any more, since
# the others ask for a state or a county that no store of a small scale stands in.
SCALE = 0.05

# Neighbouring dates share a partition: with one for each of 1,800 dates, Spark would spend the run on opening
# files of a kilobyte. A fact's row keeps a date of date_dim, so every join finds what it would have found.
DAYS_PER_PARTITION = 10

PARTITION_COLUMNS = {
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
}

# The one thing that Spark does not read as it stands (queries 16, 32, 50, 62, 92, 94, 95 and 99): a name in
# double quotes, which are a string's to Spark.
_QUOTED_NAME = re.compile(r'"([^"]*)"')


class MissingExtensionError(Exception):
    """The wheel with DuckDB's TPC-DS extension is not installed, or is another than expected."""


def tpcds(*, days_per_partition: int = DAYS_PER_PARTITION, scale: float = SCALE) -> StarBenchmark:
    """Make the data; takes some seconds, or hardly any at scale 0, where the tables are empty."""
    connection = duckdb.connect()
    _ = connection.execute(f"LOAD '{_extension()}'")
    _ = connection.execute(f"CALL dsdgen(sf = {scale})")
    for table, column in PARTITION_COLUMNS.items():
        _ = connection.execute(f"UPDATE {table} SET {column} = {column} - {column} % {days_per_partition}")
    return StarBenchmark(_queries(connection), PARTITION_COLUMNS, connection)


def _queries(connection: DuckDBPyConnection) -> dict[str, str]:
    rows = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {f"q{number}": _in_sparks_words(text) for number, text in rows}


def _in_sparks_words(text: str) -> str:
    return _QUOTED_NAME.sub(r"`\1`", text.strip().removesuffix(";"))


def _extension() -> Path:
    spec = find_spec("duckdb_extension_tpcds")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [path for folder in folders for path in Path(folder).rglob("tpcds.duckdb_extension")]
    if len(found) != 1:
        raise MissingExtensionError(
            f"expected one tpcds.duckdb_extension in the package duckdb-extension-tpcds, found {len(found)}; "
            f"install the release that goes with duckdb {duckdb.__version__}"
        )
    return found[0]
