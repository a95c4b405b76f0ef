"""Types that drivers do not know: each gets of the proxy what it gets directly, as docs/tools.md has it."""

import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import impala.dbapi
import pytest
from drivers import hive_driver, spark_driver
from support.maven import ClientMissingError, is_required, require_compiler
from support.profile import only_deep

from demo.hive import Endpoint, connect
from demo.java import Java
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
PROGRAM = Path(__file__).with_name("JdbcTypes.java")
PROGRAM_SECONDS_MAX = 500
# A row of the table: an expression, then a cell for each driver, in this order.
ROW = re.compile(
    r"^\| `(?P<expression>[^|]+)` \| (?P<pyhive>[^|]+) \| (?P<impyla>[^|]+) \| (?P<jdbc>[^|]+) \|$", re.MULTILINE
)
HEADING = "## Types of Spark 4"
# A type and a value, or words of a failure: what the page shows of either.
Answer = tuple[str, str]
Ask = Callable[[Endpoint, Sequence[str]], list[Answer]]


def table() -> dict[str, dict[str, str]]:
    """The cells of the page by expression and driver."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    rows = [found.groupdict() for found in ROW.finditer(section)]
    assert len(rows) > 8
    return {row.pop("expression"): row for row in rows}


def by_cursor(open_connection: Callable[[Endpoint], Any]) -> Ask:
    def ask(endpoint: Endpoint, queries: Sequence[str]) -> list[Answer]:
        return [one(endpoint, query) for query in queries]

    def one(endpoint: Endpoint, query: str) -> Answer:
        # A session for each: impyla closes its connection at some errors.
        with closing(open_connection(endpoint)) as connection, closing(connection.cursor()) as cursor:
            try:
                cursor.execute(query)
                ((value,),) = cursor.fetchall()
                return cursor.description[0][1], str(value)
            except Exception as error:  # noqa: BLE001 - a KeyError is one way to fail
                # Without the stack trace and the number of its lines, which are not the same twice.
                words = f"{type(error).__name__} {error}".split("', '")[0]
                return "failed", re.sub(r":\d+:\d+$", "", words)

    return ask


def impyla(endpoint: Endpoint) -> Any:
    return impala.dbapi.connect(
        host=endpoint.host,
        port=endpoint.port,
        auth_mechanism="PLAIN",
        user="tester",
        password="x",  # noqa: S106 - the server asks for none
    )


def by_jdbc(java: Java, version: str) -> Ask:
    require_compiler(java)
    try:
        found = spark_driver() if version == "2.3" else hive_driver(version)
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))

    def ask(endpoint: Endpoint, queries: Sequence[str]) -> list[Answer]:
        options = ["-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", "-cp", found.class_path]
        command = [str(java.path), *options, str(PROGRAM), endpoint.jdbc_url, *queries]
        done = subprocess.run(
            command, check=False, capture_output=True, encoding="utf-8", timeout=PROGRAM_SECONDS_MAX
        )
        assert done.returncode == 0, done.stderr
        answers = [tuple(line.split("\t", 1)) for line in done.stdout.splitlines()]
        return [(kind, value) for kind, value in answers]

    return ask


deep = only_deep("a driver as those of the quick run")


@pytest.mark.parametrize(
    ("column", "version"),
    [
        ("pyhive", ""),
        ("impyla", ""),
        ("jdbc", "4.0.1"),
        pytest.param("jdbc", "2.3", marks=deep),
        pytest.param("jdbc", "3.1.3", marks=deep),
        # It opens no session directly.
        pytest.param("jdbc", "4.0.0", marks=deep),
    ],
)
def test_a_driver_gets_what_it_gets_directly_and_the_page_says_what(
    spark: ThriftServer, proxy: ProxyProcess, java: Java, column: str, version: str
) -> None:
    rows = table()
    queries = [f"SELECT {expression} AS v" for expression in rows]
    ask = {"pyhive": by_cursor(connect), "impyla": by_cursor(impyla)}.get(column) or by_jdbc(java, version)
    proxied = ask(proxy.endpoint, queries)
    if version != "4.0.0":
        assert proxied == ask(spark.endpoint, queries)
    for (expression, cells), answer in zip(rows.items(), proxied, strict=True):
        assert says(cells[column], answer), f"{expression} is {answer}, and the page has {cells[column]}"


def says(cell: str, answer: Answer) -> bool:
    """True if a cell says the answer: "fails: `words of the error`", or "type, `value`"."""
    kind, value = answer
    said, quoted = cell.partition("`")[0], cell.partition("`")[2].rstrip("`")
    if kind == "failed":
        return said == "fails: " and quoted in value
    name = re.sub("_?type$", "", kind.lower())
    return (said, quoted) == (f"{name}, ", value)
