"""The comparison as a table for people and as JSON for programs."""

import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from demo.compare import Comparison, Measured
from demo.hive import Endpoint
from demo.java import Java, beeline_command, spark_home

GIGABYTE = 1024**3


def as_json(comparisons: Sequence[Comparison], java: Java) -> dict[str, Any]:
    """What `--json` prints; seconds are medians."""
    return {
        "queries": [_query(comparison) for comparison in comparisons],
        "machine": {
            "cpus": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIGABYTE, 1),
            "platform": platform.platform(),
        },
        "versions": {
            "starpruner": version("starpruner"),
            "spark": version("pyspark"),
            "java": java.version,
            "python": platform.python_version(),
            "sqlglot": version("sqlglot"),
        },
    }


def _query(comparison: Comparison) -> dict[str, Any]:
    explained = comparison.explained
    return {
        "name": comparison.query.name,
        "sql": comparison.query.sql.strip(),
        "rewritten": explained.rewritten and explained.rewritten.strip(),
        "rows": comparison.direct.rows,
        "equal": comparison.equal,
        "direct_cold_s": round(comparison.direct.cold_s, 3),
        "proxied_cold_s": round(comparison.proxied.cold_s, 3),
        "direct_warm_s": round(comparison.direct.warm_s, 3),
        "proxied_warm_s": round(comparison.proxied.warm_s, 3),
        "key_query_s": explained.key_query_s,
        "partitions_total": explained.partitions_total,
        "partitions_kept": explained.partitions_kept,
    }


def print_table(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Before and after, three lines for each query; it fits into 80 columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("query", no_wrap=True)
    for header in ("cold s", "warm s", "listed", "read", "keys s", "gain", "equal"):
        table.add_column(header, justify="right", no_wrap=True)
    for comparison in comparisons:
        table.add_row(f"[bold]{comparison.query.name}[/]")
        table.add_row("  directly", *_side(comparison.direct))
        table.add_row("  proxied", *_side(comparison.proxied), *_verdict(comparison))
    console.print(table)
    console.print(
        "Seconds are medians; the proxy's include its key query (keys s). Cold: Spark has forgotten which "
        "files the table has, as after a start, a REFRESH or an INSERT. Listed and read are partitions of "
        "sales. Gain: cold, directly against through the proxy. Equal: the same rows, in any order.\n",
        style="dim",
    )


def _side(measured: Measured) -> tuple[str, ...]:
    # The sample has one file in each partition.
    listed, read = measured.scans.files_listed, measured.scans.partitions_read
    return (f"{measured.cold_s:.2f}", f"{measured.warm_s:.2f}", f"{listed:,}", f"{read:,}")


def _verdict(comparison: Comparison) -> tuple[str, str, str]:
    key_query_s = comparison.explained.key_query_s
    return (
        "none" if key_query_s is None else f"{key_query_s:.2f}",
        f"{comparison.cold_speedup:.1f}x",
        "yes" if comparison.equal else "[bold red]NO[/]",
    )


def print_how_to_connect(console: Console, java: Java, proxy: Endpoint, server: Endpoint, admin_url: str) -> None:
    """Everything that a user can copy from the terminal, never wrapped or coloured."""
    lines = f"""Connect through the proxy ({proxy}), or to Spark Thrift Server itself ({server}):

  JDBC      {proxy.jdbc_url}
  beeline   {_beeline(java, proxy.jdbc_url)}
  PyHive    from pyhive import hive
            cursor = hive.connect(host="{proxy.host}", port={proxy.port}, username="demo").cursor()
  explain   starpruner explain --backend {server} "SELECT ..."
  admin     {admin_url}
"""
    console.print(lines, markup=False, highlight=False, soft_wrap=True)


def _beeline(java: Java, url: str) -> str:
    if not java.runs_spark_scripts:
        return shlex.join(beeline_command(java, url, "-n", "demo"))
    script = spark_home() / "bin" / "beeline"
    return shlex.join(["env", f"JAVA_HOME={java.home}", str(script), "-u", url, "-n", "demo"])
