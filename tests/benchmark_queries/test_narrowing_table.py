"""What is narrowed in the benchmarks' queries, planned without Spark, is what docs/tpcds.md says.

`pytest tests/benchmark_queries --update-goldens` records it; read the difference before you commit it.
"""

import pytest
from known_benchmarks import benchmark
from narrowing import fact_scans
from narrowing_table import record, recorded, render


@pytest.mark.parametrize(("name", "queries"), [("tpcds", 99), ("ssb", 13)])
def test_the_page_shows_what_is_narrowed(name: str, queries: int, *, updating: bool) -> None:
    made = benchmark(name)
    assert len(made.queries) == queries
    table = render({query: fact_scans(made, query) for query in made.queries})
    if updating:
        record(name, table)
    assert table == recorded(name)
