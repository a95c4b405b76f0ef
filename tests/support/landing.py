"""Modules that run once a landing, and not in `make test` while a change is made.

They are slow for what they add to the quick run: other modules have a test of each kind of what they look into.
`make test LANDING=1`, which `.ci/run` calls, runs them too, and so does `make test-deep`.
reach/test_reach_on_spark.py leaves most of its statements to landings by the same mark.
"""

from typing import Final

# By path below tests/, each with the modules that a quick run has of its kind.
LANDING: Final = frozenset(
    {
        # Lists of partitions on Spark: rewriter/test_listed_goldens, without Spark.
        "rewriter/test_listed_goldens_on_spark.py",
        # Random changes of a statement's text: test_golden_on_spark, test_differential_on_spark.
        "faults/test_fuzzed_sql.py",
        # Overtaken statements on Spark: proxy/relay/test_overtaken, without Spark.
        "faults/test_overtaken_statements.py",
        # Everything changes at once, for half a minute: test_changing_keys, test_changing_tables.
        "faults/test_answers_while_all_changes.py",
        "faults/test_changing_keys_across_workers.py",
        # Random tables and statements on Iceberg: test_iceberg_examples, test_golden_on_iceberg.
        "iceberg/test_iceberg_differential.py",
        "iceberg/test_commits_between.py",
        # Snapshots named through a real proxy: proxy/session/test_iceberg_statements, without Spark.
        "iceberg/test_named_snapshots.py",
        "iceberg/test_compaction_of_iceberg.py",
        # Filters in front of Derby and PostgreSQL: rewriter/predicates/test_metastore_filter.
        "metastores/test_metastores.py",
        # Queries of TPC-DS and SSB: test_golden_on_spark.
        "benchmark_queries/test_benchmarks_on_spark.py",
        # The pipeline in Spark, of which the proxy knows nothing: pipeline/load/test_load.
        "layouts/test_compaction_on_spark.py",
        "layouts/test_layouts_differential.py",
        # The pipeline's jobs on a cluster: pipeline/load/test_load and pipeline/index/test_index, in one process.
        "pipeline/test_standalone_cluster.py",
        "pipeline/compaction/test_compaction.py",
        "pipeline/compaction/test_killed_compactions.py",
        "pipeline/swap/test_dropped_partitions.py",
        "pipeline/swap/test_exchange.py",
        "pipeline/swap/test_overwritten.py",
        # Beeline's own commands: e2e/test_beeline. Shadow runs: proxy/session/shadow/test_compare.
        "clients/test_beeline_commands.py",
        "proxy/session/shadow/test_shadow_on_spark.py",
        # Clients over HTTP before Spark: proxy/http/test_http_to_http, and e2e/test_transports_on_spark.
        "proxy/http/test_clients_over_http.py",
        # Clients with Kerberos before Spark with Kerberos: kerberos/test_logins, without Spark.
        "kerberos/test_kerberized_spark.py",
        # Several backends on Spark: proxy/backends/test_several_backends, without Spark.
        "proxy/backends/test_backends_on_spark.py",
        # Partition lists in a real HBase: proxy/session/layout/test_hbase_store, with a gateway in memory.
        "proxy/session/layout/test_hbase_store_on_hbase.py",
        # Images and Compose in containers: deploy/test_compose_files and its neighbours, without an engine.
        "containers/test_proxy_image.py",
        "containers/test_compose.py",
    }
)


def is_landing(path: str) -> bool:
    """True if the module at a path such as `tests/faults/test_fuzzed_sql.py` runs in landings alone."""
    return path.removeprefix("tests/") in LANDING
