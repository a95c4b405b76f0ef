"""Modules that run once a landing, or in one landing of four, and not in `make test` while a change is made.

They are slow for what they add to the quick run: other modules have a test of each kind of what they look into.
`make test LANDING=1`, which `.ci/run` calls, runs those of LANDING, and a quarter of ROTATED by the date: each of
those runs every fourth day (STARPRUNER_GOLDEN_DAY names another day). A change of what such a module guards is
reason to run it by its path; `make test-deep` runs all. reach/test_reach_on_spark.py leaves most of its statements
to landings by the same mark.
"""

from datetime import date
from typing import Final

# Days between two runs of a module in ROTATED.
ROTATION_DAYS: Final = 4

# By path below tests/, each with the modules that a quick run has of its kind.
LANDING: Final = frozenset(
    {
        # The image of the proxy, by an engine: deploy/test_image_files, without one.
        "containers/test_proxy_image.py",
    }
)

# The same. The modules of one day stand ROTATION_DAYS places apart: each four neighbours cost about the same.
ROTATED: Final = (
    # The pipeline's jobs on a cluster: pipeline/load/test_load and pipeline/index/test_index, in one process.
    "pipeline/test_standalone_cluster.py",
    # Times and days as keys: iceberg/test_golden_on_iceberg, and rewriter/semijoins/test_days_query.
    "iceberg/test_times_on_iceberg.py",
    # Compose in containers: deploy/test_compose_files and its neighbours, without an engine.
    "containers/test_compose.py",
    "layouts/test_times_on_spark.py",
    # Golden statements in strict mode on Spark: test_golden_on_spark, and rewriter/predicates/test_strict_check.
    "rewriter/test_strict_on_spark.py",
    # Remembered keys on Spark: proxy/session/test_keys_checked, without Spark, and faults/test_changing_keys.
    "faults/test_remembered_keys.py",
    # Lists of partitions on Spark: rewriter/test_listed_goldens, without Spark.
    "rewriter/test_listed_goldens_on_spark.py",
    # Snapshots named through a real proxy: proxy/session/test_iceberg_statements, without Spark.
    "iceberg/test_named_snapshots.py",
    # Layouts on Spark: pipeline/load/test_load, e2e/test_file_index.
    "layouts/test_layouts_differential.py",
    "layouts/test_layouts_on_spark.py",
    # The demo that a person ends by Ctrl-C: `make wheel-demo`, which each landing runs.
    "demo/test_demo.py",
    # Skewed values on Spark: proxy/statements/test_skewed_by_on_spark, proxy/session/test_skew_statements.
    "layouts/test_list_bucketing_in_hive_words.py",
    # Clients with Kerberos before Spark with Kerberos: kerberos/test_logins, without Spark.
    "kerberos/test_kerberized_spark.py",
    # Clients over HTTP before Spark: proxy/http/test_http_to_http, and e2e/test_transports_on_spark.
    "proxy/http/test_clients_over_http.py",
    # Beeline's own commands: e2e/test_beeline.
    "clients/test_beeline_commands.py",
    # The steps of docs/tools: clients/test_hive_jdbc, clients/test_pyhive_cursors.
    "clients/test_tool_pages.py",
    # Filters in front of Derby and PostgreSQL: rewriter/predicates/test_metastore_filter.
    "metastores/test_metastores.py",
    # The pipeline in Spark, of which the proxy knows nothing: pipeline/load/test_load.
    "pipeline/compaction/test_compaction.py",
    # Queries of TPC-DS and SSB: test_golden_on_spark.
    "benchmark_queries/test_benchmarks_on_spark.py",
    "pipeline/compaction/test_killed_compactions.py",
    # Random changes of a statement's text: test_golden_on_spark, test_differential_on_spark.
    "faults/test_fuzzed_sql.py",
    # Random tables and statements on Iceberg: test_iceberg_examples, test_golden_on_iceberg.
    "iceberg/test_iceberg_differential.py",
    # Shadow runs: proxy/session/shadow/test_compare.
    "proxy/session/shadow/test_shadow_on_spark.py",
    # Mutations of hints on Spark: differential/test_mutations, without Spark.
    "layouts/test_hint_mutations.py",
    # Partition lists and lessons in a real HBase: proxy/session/layout/test_hbase_store, and
    # proxy/session/sharing/test_lesson_exchange, with a gateway in memory.
    "proxy/session/layout/test_hbase_store_on_hbase.py",
    "proxy/session/sharing/test_lesson_exchange_on_hbase.py",
    # Several backends on Spark: proxy/backends/test_several_backends, without Spark.
    "proxy/backends/test_backends_on_spark.py",
    # Everything changes at once, for half a minute: test_changing_keys, test_changing_tables.
    "faults/test_answers_while_all_changes.py",
    # Overtaken statements on Spark: proxy/relay/test_overtaken, without Spark.
    "faults/test_overtaken_statements.py",
    "iceberg/test_commits_between.py",
    "layouts/test_compaction_on_spark.py",
    "iceberg/test_compaction_of_iceberg.py",
    "pipeline/swap/test_dropped_partitions.py",
    "pipeline/swap/test_exchange.py",
    "pipeline/swap/test_overwritten.py",
    "faults/test_changing_keys_across_workers.py",
    # The advice on layouts, on Spark: benchmark_queries/test_advice, without Spark.
    "layouts/test_advised_layouts.py",
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
