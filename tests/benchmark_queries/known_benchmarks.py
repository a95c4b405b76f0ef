"""The benchmarks by name, each made once for the session."""

from collections.abc import Callable
from functools import cache, partial

from ssb import ssb
from star_benchmark import StarBenchmark
from tpcds import tpcds

# A coarse TPC-DS, with some sixty partitions for each fact, for what must be quick on Spark.
_MAKERS: dict[str, Callable[[], StarBenchmark]] = {
    "tpcds": tpcds,
    "tpcds_coarse": partial(tpcds, days_per_partition=30),
    "ssb": ssb,
}


@cache
def benchmark(name: str) -> StarBenchmark:
    """The benchmark, its tables loaded into DuckDB."""
    return _MAKERS[name]()
