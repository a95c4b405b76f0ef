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

# Widths of the columns after the query's name; with its 21 characters they make 80.
LINE_WIDTHS = (9, 10, 7, 14, 13, 6)

# Without quotes, so that it can be copied into any shell.
EXAMPLE = "SELECT sum(s.amount) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 12"


def as_json(comparisons: Sequence[Comparison], java: Java) -> dict[str, Any]:
    """The object that `--json` prints; seconds are medians."""
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


def print_heading(console: Console) -> None:
    """The names of the columns of `print_line`."""
    _print_columns(console, ("query, cold", "direct s", "proxied s", "ratio", "listed", "files read", "equal"))


def print_line(console: Console, comparison: Comparison) -> None:
    """One query before and after, as soon as it is measured; it fits into 80 columns."""
    direct, proxied = comparison.direct, comparison.proxied
    cells = (
        comparison.query.name,
        f"{direct.cold_s:.2f}",
        f"{proxied.cold_s:.2f}",
        f"{comparison.cold_speedup:.1f}x",
        f"{direct.scans.files_listed:,} → {proxied.scans.files_listed:,}",
        f"{direct.scans.files_read:,} → {proxied.scans.files_read:,}",
        "yes" if comparison.equal else "NO",
    )
    _print_columns(console, cells, style=None if comparison.equal else "bold red")


def _print_columns(console: Console, cells: Sequence[str], style: str | None = None) -> None:
    name, *numbers = cells
    line = f"{name:<21}" + "".join(f"{cell:>{width}}" for cell, width in zip(numbers, LINE_WIDTHS, strict=True))
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def print_table(console: Console, comparisons: Sequence[Comparison], runs: int) -> None:
    """All queries with all that was measured, three lines for each; it fits into 80 columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("query", no_wrap=True)
    for header in ("cold s", "warm s", "listed", "read", "keys s", "ratio", "equal"):
        table.add_column(header, justify="right", no_wrap=True)
    for comparison in comparisons:
        table.add_row(f"[bold]{comparison.query.name}[/]")
        table.add_row("  directly", *_side(comparison.direct))
        table.add_row("  proxied", *_side(comparison.proxied), *_verdict(comparison))
    console.print(table)
    seconds = "one run each; --runs 3 gives medians" if runs == 1 else f"medians of {runs} runs"
    console.print(
        f"Seconds: {seconds}. The proxy's include its key query (keys s). Cold: Spark has forgotten which "
        "files the table has, as after a start, a REFRESH or an INSERT. Listed and read are files of sales, one "
        "in each partition. Ratio: cold, direct by proxied. Equal: the same rows, in any order.\n",
        style="dim",
    )


def _side(measured: Measured) -> tuple[str, ...]:
    listed, read = measured.scans.files_listed, measured.scans.files_read
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
    lines = f"""
Try it: both servers stay up until Ctrl-C. The times of the queries below include whatever you run meanwhile.

  Through the proxy, {proxy}
    JDBC        {proxy.jdbc_url}
    beeline     {_beeline(java, proxy.jdbc_url)}
    PyHive      {_pyhive(proxy)}
  Directly, Spark Thrift Server on {server}
    JDBC        {server.jdbc_url}
    beeline     {_beeline(java, server.jdbc_url)}
    PyHive      {_pyhive(server)}
  The proxy's account of a query
    any client  EXPLAIN REWRITE {EXAMPLE}
                SHOW STARPRUNER STATEMENTS
    command     starpruner explain --backend {server} "{EXAMPLE}"
    HTTP        curl -u demo:demo --json '{{"sql": "{EXAMPLE}"}}' {admin_url}/explain
  The web page  {admin_url}/ (sign in as demo, with any password)
  What runs     starpruner top --user demo --admin {admin_url}
  Metrics       {admin_url}/metrics
"""
    console.print(lines, markup=False, highlight=False, soft_wrap=True)


def _pyhive(endpoint: Endpoint) -> str:
    return (
        f'from pyhive import hive; cursor = hive.connect(host="{endpoint.host}", port={endpoint.port}, '
        f'username="demo").cursor()'
    )


def _beeline(java: Java, url: str) -> str:
    if not java.runs_spark_scripts:
        return shlex.join(beeline_command(java, url, "-n", "demo"))
    script = spark_home() / "bin" / "beeline"
    return shlex.join(["env", f"JAVA_HOME={java.home}", str(script), "-u", url, "-n", "demo"])
