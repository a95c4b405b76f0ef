"""What beeline has beside statements: its own commands, output formats, files, and Ctrl-C."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.beeline_clients import BEELINE_SECONDS_MAX, comparable_message
from support.cheap_spark import QUICK_COMPILER
from support.server_statements import StatementPage

from demo.hive import Endpoint
from demo.java import Java, beeline_command
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

INIT = "SET spark.sql.session.timeZone=Asia/Tokyo;\nUSE small_star;\n"
STAR_JOIN = """SELECT v.ds, count(*) AS n FROM visits v JOIN days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' GROUP BY v.ds ORDER BY v.ds"""
FORMATS = ("table", "vertical", "csv2", "tsv2", "dsv", "xmlattr", "xmlelements")
COMMANDS = """!set outputformat table
!tables
!describe visits
!columns days
!indexes visits
!primarykeys visits
!exportedkeys visits
!importedkeys visits
!procedures
!typeinfo
!metadata getSchemas
!metadata getTableTypes
!nativesql SELECT 1
!isolation
!set incremental true
!list
!no_such_command
"""
SLEEP = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) AS beeline_sleeps FROM range(0, {seconds}, 1, 1)"


def _script() -> str:
    rows = "SELECT * FROM VALUES (1, 'a, \"b\"'), (NULL, 'é') AS t(number, label);"
    shown = "".join(f"!set outputformat {name}\n{rows}\n{STAR_JOIN};\n" for name in FORMATS)
    return f"SELECT current_timezone(), current_database();\n{shown}{COMMANDS}SELECT 'the end' AS z;\n"


def _start(java: Java, endpoint: Endpoint, home: Path, *options: str) -> subprocess.Popen[str]:
    command = beeline_command(java, endpoint.jdbc_url, "-n", "tester", *options)
    # Two at once would make the file of one history, and say so where the other comes first.
    home = home / str(endpoint.port)
    home.mkdir(exist_ok=True)
    command[1:1] = [QUICK_COMPILER, f"-Duser.home={home}", "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8"]
    return subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _printed(process: subprocess.Popen[str], endpoint: Endpoint) -> tuple[str, str]:
    printed, errors = process.communicate(timeout=BEELINE_SECONDS_MAX)
    return _comparable(printed, endpoint), _comparable(errors, endpoint)


def _comparable(printed: str, endpoint: Endpoint) -> str:
    # Beeline says where it connects to, in its prompt as in as many dots, and how long a statement took.
    here = re.sub(r"(\. )+\.>", "...>", printed.replace(str(endpoint), "HOST:PORT"))
    return comparable_message(re.sub(r"\(\d[\d.,]* seconds\)", "(SECONDS)", here))


def _on_both(
    spark: ThriftServer, proxy: ProxyProcess, run: Callable[[Endpoint], tuple[str, str]]
) -> list[tuple[str, str]]:
    """Both sides at once: a start of beeline takes seconds."""
    with ThreadPoolExecutor() as pool:
        return [*pool.map(run, (proxy.endpoint, spark.endpoint))]


@pytest.mark.usefixtures("small_star")
def test_commands_and_formats_print_the_same_through_the_proxy(
    spark: ThriftServer, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    init, script = tmp_path / "init.sql", tmp_path / "script.sql"
    init.write_text(INIT)
    script.write_text(_script())
    options = ("--force=true", "-i", str(init), "-f", str(script))
    proxied, direct = _on_both(
        spark, proxy, lambda endpoint: _printed(_start(java, endpoint, tmp_path, *options), endpoint)
    )
    assert proxied == direct
    assert "Asia/Tokyo" in proxied[0]
    assert "| visits" in proxied[0]
    shown = ("| d3  | 8  |", "d3,8", "d3\t8", "d3|8", '<result ds="d3" n="8"/>', "<ds>d3</ds>")
    assert all(row in proxied[0] for row in shown)
    assert "the end" in proxied[0]


@pytest.mark.usefixtures("small_star")
def test_statements_of_the_command_line_print_the_same_through_the_proxy(
    spark: ThriftServer, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    statements = ("SELECT 1 AS one", "USE small_star", STAR_JOIN, "SELECT '${hivevar:word}' AS word", "SELEC 1")
    words = (word for statement in statements for word in ("-e", statement))
    options = ("--hivevar", "word=hello", "--outputformat=csv2", "--showHeader=false", *words)
    proxied, direct = _on_both(
        spark, proxy, lambda endpoint: _printed(_start(java, endpoint, tmp_path, *options), endpoint)
    )
    assert proxied == direct
    assert "d1,8\nd3,8\n" in proxied[0]
    assert "hello\n" in proxied[0]
    assert "PARSE_SYNTAX_ERROR" in proxied[1]


def test_ctrl_c_cancels_the_statement(
    spark: ThriftServer, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    pages = StatementPage(spark.ui_url)

    def interrupted(endpoint: Endpoint, seconds: int) -> tuple[str, str]:
        statement = SLEEP.format(seconds=seconds)
        process = _start(java, endpoint, tmp_path, "-e", statement)
        while not pages.runs(statement):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        return _printed(process, endpoint)

    proxied, direct = interrupted(proxy.endpoint, 120), interrupted(spark.endpoint, 121)
    assert proxied == direct
    assert "Query was cancelled" in proxied[1]
    assert pages.becomes_idle()
