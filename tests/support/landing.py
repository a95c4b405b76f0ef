"""Modules that run once a landing, or in one landing of three, and not in `make test` while a change is made.

They are slow for what they add to the quick run: other modules have a test of each kind of what they look into.
`make test LANDING=1`, which `.ci/run` calls, runs those of LANDING, and a third of ROTATED by the date: each of
those runs every third day (STARPRUNER_GOLDEN_DAY names another day). A change of what such a module guards is
reason to run it by its path; `make test-deep` runs all. reach/test_reach_on_spark.py leaves most of its statements
to landings by the same mark.
"""

from datetime import date
from typing import Final

# Days between two runs of a module in ROTATED.
ROTATION_DAYS: Final = 3

# By path below tests/, each with the modules that a quick run has of its kind.
LANDING: Final = frozenset(
    {
        # Random changes of a statement's text: test_golden_on_spark, test_differential_on_spark.
        "faults/test_fuzzed_sql.py",
        # Everything changes at once, for half a minute: test_changing_keys, test_changing_tables.
        "faults/test_answers_while_all_changes.py",
        # Random tables and statements on Iceberg: test_iceberg_examples, test_golden_on_iceberg.
        "iceberg/test_iceberg_differential.py",
        # Clients with Kerberos before Spark with Kerberos: kerberos/test_logins, without Spark.
        "kerberos/test_kerberized_spark.py",
        # Images and Compose in containers: deploy/test_compose_files and its neighbours, without an engine.
        "containers/test_proxy_image.py",
        "containers/test_compose.py",
    }
)

# The same, in an order in which three neighbours cost about as much as the next three.
ROTATED: Final = (
    # Snapshots named through a real proxy: proxy/session/test_iceberg_statements, without Spark.
    "iceberg/test_named_snapshots.py",
    # Layouts on Spark, and the advice on them: pipeline/load/test_load, e2e/test_file_index.
    "layouts/test_layouts_on_spark.py",
    "layouts/test_advised_layouts.py",
    # The pipeline in Spark, of which the proxy knows nothing: pipeline/load/test_load.
    "layouts/test_layouts_differential.py",
    "pipeline/compaction/test_killed_compactions.py",
    # Clients over HTTP before Spark: proxy/http/test_http_to_http, and e2e/test_transports_on_spark.
    "proxy/http/test_clients_over_http.py",
    # Lists of partitions on Spark: rewriter/test_listed_goldens, without Spark.
    "rewriter/test_listed_goldens_on_spark.py",
    # Shadow runs: proxy/session/shadow/test_compare.
    "proxy/session/shadow/test_shadow_on_spark.py",
    # Queries of TPC-DS and SSB: test_golden_on_spark.
    "benchmark_queries/test_benchmarks_on_spark.py",
    # The pipeline's jobs on a cluster: pipeline/load/test_load and pipeline/index/test_index, in one process.
    "pipeline/test_standalone_cluster.py",
    "pipeline/compaction/test_compaction.py",
    # Filters in front of Derby and PostgreSQL: rewriter/predicates/test_metastore_filter.
    "metastores/test_metastores.py",
    # The demo that a person ends by Ctrl-C: `make wheel-demo`, which each landing runs.
    "demo/test_demo.py",
    # Overtaken statements on Spark: proxy/relay/test_overtaken, without Spark.
    "faults/test_overtaken_statements.py",
    "iceberg/test_commits_between.py",
    # Beeline's own commands: e2e/test_beeline.
    "clients/test_beeline_commands.py",
    "layouts/test_compaction_on_spark.py",
    "iceberg/test_compaction_of_iceberg.py",
    # Several backends on Spark: proxy/backends/test_several_backends, without Spark.
    "proxy/backends/test_backends_on_spark.py",
    "pipeline/swap/test_dropped_partitions.py",
    "pipeline/swap/test_exchange.py",
    "pipeline/swap/test_overwritten.py",
    "faults/test_changing_keys_across_workers.py",
    # Partition lists in a real HBase: proxy/session/layout/test_hbase_store, with a gateway in memory.
    "proxy/session/layout/test_hbase_store_on_hbase.py",
    # Golden statements in strict mode on Spark: test_golden_on_spark, and rewriter/predicates/test_strict_check.
    "rewriter/test_strict_on_spark.py",
    # The steps of docs/tools: clients/test_hive_jdbc, clients/test_pyhive_cursors.
    "clients/test_tool_pages.py",
    # Mutations of hints on Spark: differential/test_mutations, without Spark.
    "layouts/test_hint_mutations.py",
)


def is_landing(path: str) -> bool:
    """True if the module at a path such as `tests/faults/test_fuzzed_sql.py` runs in landings alone."""
    return path.removeprefix("tests/") in LANDING or _rotated(path)


def is_of_another_day(path: str, day: str) -> bool:
    """True if the module runs in landings, but in none on a day such as `2026-11-23`."""
    if not _rotated(path):
        return False
    place = ROTATED.index(path.removeprefix("tests/"))
    return (place + date.fromisoformat(day).toordinal()) % ROTATION_DAYS != 0


def _rotated(path: str) -> bool:
    return path.removeprefix("tests/") in ROTATED
