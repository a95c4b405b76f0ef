"""Clients that fetch a result again and again, each on a session that stays open, and return the seconds."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, check_call
from time import perf_counter
from typing import IO, TypeAlias

from counting_client import CountingClient

from demo.hive import Endpoint, connect, run
from demo.java import Java, beeline_command, spark_home

# Runs a query once, and returns the seconds that it took.
Fetch: TypeAlias = Callable[[], float]

_PROGRAM = Path(__file__).with_name("Fetch.java")
# The line that beeline prints at the end of a result, on standard error.
_SELECTED = re.compile(r"([\d,]+) rows? selected \(([\d.,]+) seconds\)")
_DRIVER = "org.apache.hive.jdbc.HiveDriver"


@contextmanager
def counting(endpoint: Endpoint, sql: str, rows: int) -> Iterator[Fetch]:
    """Our own client, which decodes nothing."""
    with CountingClient(endpoint) as client:

        def fetch() -> float:
            start = perf_counter()
            _expect(client.fetch_all(sql) > rows, "a few bytes for each row")
            return perf_counter() - start

        yield fetch


@contextmanager
def pyhive(endpoint: Endpoint, sql: str, rows: int) -> Iterator[Fetch]:
    """PyHive, which spends most of the time on decoding."""
    with closing(connect(endpoint)) as connection:

        def fetch() -> float:
            start = perf_counter()
            _expect(len(run(connection, sql)) == rows, f"{rows} rows")
            return perf_counter() - start

        yield fetch


def compiled(java: Java, directory: Path) -> Path:
    """The folder of the program's class. Starting its source instead would search all of Spark's jars."""
    directory.mkdir(parents=True, exist_ok=True)
    compiler = java.path.with_name("javac")
    _ = check_call([str(compiler), "-proc:none", "-d", str(directory), str(_PROGRAM)])
    return directory


@contextmanager
def hive_jdbc(java: Java, classes: Path, endpoint: Endpoint, sql: str, rows: int) -> Iterator[Fetch]:
    """hive-jdbc as it comes with Spark, in a small program."""
    options = [f"-Djdbc.drivers={_DRIVER}", "-cp", f"{classes}:{spark_home()}/jars/*"]
    command = [str(java.path), *options, _PROGRAM.stem, endpoint.jdbc_url, sql]
    with _talking(command) as (say, output, _):

        def fetch() -> float:
            say("")
            count, seconds = output.readline().split()
            _expect(int(count) == rows, f"{rows} rows")
            return float(seconds)

        yield fetch


@contextmanager
def beeline(java: Java, endpoint: Endpoint, sql: str, rows: int) -> Iterator[Fetch]:
    """Beeline as it comes with Spark, with the time that it prints itself."""
    command = beeline_command(java, endpoint.jdbc_url, "-n", "bench", "--outputformat=tsv2")
    with _talking(command, output=DEVNULL) as (say, _, errors):

        def fetch() -> float:
            say(f"{sql};")
            while (found := _SELECTED.search(errors.readline())) is None:
                pass
            _expect(int(found[1].replace(",", "")) == rows, f"{rows} rows")
            return float(found[2].replace(",", ""))

        yield fetch


@contextmanager
def _talking(
    command: Sequence[str], output: int = PIPE
) -> Iterator[tuple[Callable[[str], None], IO[str], IO[str]]]:
    """A process that is told lines and answers by lines."""
    with Popen(
        command, stdin=PIPE, stdout=output, stderr=PIPE if output == DEVNULL else DEVNULL, text=True
    ) as child:
        assert child.stdin is not None  # noqa: S101 - it was asked for
        asked = child.stdin

        def say(line: str) -> None:
            _ = asked.write(f"{line}\n")
            asked.flush()

        try:
            yield say, child.stdout or asked, child.stderr or asked
        finally:
            asked.close()
            child.kill()


def _expect(holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise RuntimeError(f"a result had not {what}")
