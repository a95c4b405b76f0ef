"""Beeline, by far the most common client, cannot tell the proxy from the server."""

import re
import subprocess
from pathlib import Path

from support.beeline_clients import comparable_message, run_beeline

from demo.hive import Endpoint
from demo.java import Java
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

# One start of beeline takes seconds, so one script holds everything.
SCRIPT = """
select 1;
SELECT true AS a, 1Y AS b, 2S AS c, 3 AS d, 4L AS e, 1.5F AS f, 2.5D AS g, 12.34BD AS h, 'text' AS i,
  DATE'2024-02-29' AS j, TIMESTAMP'2024-02-29 12:34:56.789' AS k, X'4142' AS l, array(1, 2) AS m, NULL AS n;
SELECT * FROM VALUES (1, 'a'), (NULL, NULL), (3, '') AS t(a, b);
SELECT 'Zażółć gęślą jaźń' AS a, '日本語' AS b, '🦔' AS c;
SELECT id FROM range(0);
CREATE DATABASE IF NOT EXISTS e2e_beeline;
USE e2e_beeline;
SELECT current_database();
CREATE TEMPORARY VIEW mine AS SELECT id AS k FROM range(3);
SELECT * FROM mine ORDER BY k;
SET spark.sql.session.timeZone=Asia/Tokyo;
SELECT current_timezone();
SELECT * FROM no_such_table;
SELEC 1;
SELECT raise_error('it was planned so');
SELECT id, concat('row ', id) AS label FROM range(200000);
SELECT 'the end' AS z;
"""


def _standard_error(done: subprocess.CompletedProcess[str], endpoint: Endpoint) -> str:
    # Beeline says where it connects to.
    return comparable_message(done.stderr.replace(str(endpoint), "HOST:PORT"))


def test_a_beeline_script_prints_the_same_through_the_proxy(
    spark: ThriftServer, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    proxied = run_beeline(java, proxy.endpoint, SCRIPT, tmp_path)
    direct = run_beeline(java, spark.endpoint, SCRIPT, tmp_path)

    assert proxied.stdout.rstrip().endswith("the end"), proxied.stderr
    assert proxied.stdout == direct.stdout
    assert len(re.findall(r"^\d+\trow \d+$", proxied.stdout, re.MULTILINE)) == 200_000
    assert _standard_error(proxied, proxy.endpoint) == _standard_error(direct, spark.endpoint)
    for words in ("TABLE_OR_VIEW_NOT_FOUND", "42P01", "PARSE_SYNTAX_ERROR", "42601", "it was planned so"):
        assert words in proxied.stderr
