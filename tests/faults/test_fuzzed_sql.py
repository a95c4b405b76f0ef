"""Mutated statements on the real server: through the proxy they answer, or fail, as they do directly.

STARPRUNER_DEEP=1 tries 100,000 of them, or as many as STARPRUNER_FUZZ_SECONDS allow, and says how far it is.
STARPRUNER_SEED=7 makes another run of it.
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from threading import Lock

import pytest
from fault_stage import Seen, seen
from grammar import random_query
from mutants import Mutator
from pyhive import hive
from seeding import seeded, seeds
from star_tables import Star, random_star
from support.profile import DEEP
from support.proxies import patient

from demo.hive import connect, run
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server

# The first of those that were chosen, for it is one long run.
SEED = seeds(quick=1, deep=1)[0]
MUTANTS = 100_000 if DEEP else 160
SECONDS_MAX = float(os.environ.get("STARPRUNER_FUZZ_SECONDS", "10800" if DEEP else "300"))
# A server of two cores is busy with these; most mutants do not come as far as a job.
SESSIONS = 4
STATEMENTS_PER_STAR = 100
# Another set of tables now and then: their types and rows decide what a statement comes to.
MUTANTS_PER_STAR = 5_000
SETTINGS = (
    # A mutant may ask for more than a server can do: then both ways say so.
    "spark.sql.thriftServer.queryTimeout=20",
    # With a dozen rows, to compile a plan and to shuffle takes longer than to run it.
    "spark.sql.shuffle.partitions=1",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
    "spark.sql.adaptive.enabled=false",
)
# Of the deep profile's own server: with Derby, half of the time went by in looking tables up.
SERVER = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
}
PROGRESS_EVERY = 1_000
FAILURES_MAX = 5

# Of these words' statements, one answer is as good as another.
UNCERTAIN = ("limit", "rand", "first", "last", "any_value", "row_number", "offset", "sample", "uuid", "monoton")
# What depends on the rows that are read, and on which of them comes first: data exceptions and cardinality.
# Several of them come as one error of another kind, which quotes them.
DATA_ERROR = re.compile("SQLSTATE: 2[12]")
# Names that would be as good stand in any order.
SUGGESTIONS = re.compile(r"Did you mean one of the following\? \[.*?\]")


@dataclass(frozen=True)
class Pair:
    """The same session twice: on the server, and through the proxy."""

    direct: hive.Connection
    proxied: hive.Connection

    def difference(self, sql: str) -> str | None:
        """What a client sees differently through the proxy, if anything."""
        direct, proxied = seen(self.direct, sql), seen(self.proxied, sql)
        if comparable(proxied) == comparable(direct) or is_excused(sql, direct, proxied):
            return None
        if comparable(seen(self.direct, sql)) != comparable(direct):
            return None
        return f"{sql}\n--- as text: {sql!r}\n--- direct:  {direct}\n--- proxied: {proxied}"


def comparable(found: Seen) -> Seen:
    """What was seen, but for the names that an error suggests."""
    kind, about = found
    return kind, SUGGESTIONS.sub("", str(about)) if kind == "error" else about


def is_excused(sql: str, direct: Seen, proxied: Seen) -> bool:
    """Whether the statement promises no more than that: any rows, or an error from whichever row is read."""
    if has_timed_out(direct) or has_timed_out(proxied):
        return True
    if direct[0] == "error":
        return is_data_error(direct) and (proxied[0] == "rows" or is_data_error(proxied))
    return proxied[0] == "rows" and any(word in sql.lower() for word in UNCERTAIN)


def has_timed_out(found: Seen) -> bool:
    """A statement that the server ends within the call is told of by the state that it is in."""
    return any(words in str(found[1]) for words in ("timed out", "TIMEDOUT"))


def is_data_error(found: Seen) -> bool:
    return DATA_ERROR.search(str(found[1][-1])) is not None


@dataclass
class Run:
    """How far the mutants are, and what went wrong."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    failures: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def note(self, index: int, difference: str | None) -> None:
        with self.lock:
            self.done += 1
            if difference is not None:
                self.failures.append(f"STARPRUNER_SEED={SEED}, mutant {index}:\n{difference}")
                sys.stderr.write(f"{self.failures[-1]}\n")
            if self.done % PROGRESS_EVERY == 0:
                rate = self.done / (time.monotonic() - self.started)
                sys.stderr.write(f"{self.done} mutants, {rate:.1f} a second, {len(self.failures)} differ\n")

    @property
    def is_over(self) -> bool:
        return len(self.failures) >= FAILURES_MAX or time.monotonic() - self.started > SECONDS_MAX


def pairs(spark: ThriftServer, proxy: ProxyProcess, database: str, stack: ExitStack) -> Iterator[Pair]:
    for number in range(SESSIONS):
        sessions = [
            stack.enter_context(closing(connect(endpoint, database=database)))
            for endpoint in (spark.endpoint, proxy.endpoint)
        ]
        for session in sessions:
            for setting in (*SETTINGS, f"spark.sql.ansi.enabled={str(number % 2 == 0).lower()}"):
                run(session, f"SET {setting}")
        yield Pair(*sessions)


def seeds_on(star: Star, number: int) -> Sequence[str]:
    queries = (random_query(star, seeded(SEED, number, index)) for index in count())
    return [
        query.sql
        for query in islice((q for q in queries if q.comparable and q.read_back is None), STATEMENTS_PER_STAR)
    ]


def try_mutants(pair: Pair, mutator: Mutator, indexes: Sequence[int], outcome: Run) -> None:
    for index in indexes:
        if outcome.is_over:
            return
        sql = mutator.mutant(seeded(SEED, index))
        try:
            difference = pair.difference(sql)
        except Exception as error:  # noqa: BLE001 - whatever breaks a session, the mutant is to be seen
            difference = f"{sql!r}\nbreaks the session: {error!r}"
        outcome.note(index, difference)


@pytest.fixture
def sides(
    request: pytest.FixtureRequest, java: Java, tmp_path: Path
) -> Iterator[tuple[ThriftServer, ProxyProcess]]:
    """A server and the proxy in front of it."""
    if not DEEP:
        yield request.getfixturevalue("spark"), request.getfixturevalue("proxy")
        return
    settings = ServerOptions(tmp_path / "spark", memory="3g", conf=SERVER)
    with (
        thrift_server(settings, java, progress=lambda _: None) as spark,
        proxy_process(spark.endpoint, tmp_path / "proxy", options=patient()) as proxy,
    ):
        yield spark, proxy


# As if it named the server of the session, which it asks for by name where it is not deep.
@pytest.mark.xdist_group("spark")
def test_mutants_are_answered_as_they_are_directly(sides: tuple[ThriftServer, ProxyProcess]) -> None:
    (spark, proxy), outcome = sides, Run()
    for number, first in enumerate(range(0, MUTANTS, MUTANTS_PER_STAR)):
        star, database = random_star(seeded(SEED, number)), f"fuzzed_{SEED}_{number}"
        mutator = Mutator(seeds_on(star, number))
        indexes = range(first, min(first + MUTANTS_PER_STAR, MUTANTS))
        with ExitStack() as stack, ThreadPoolExecutor(SESSIONS) as pool:
            make_database(spark, star, database)
            for worker, pair in enumerate(pairs(spark, proxy, database, stack)):
                pool.submit(try_mutants, pair, mutator, indexes[worker::SESSIONS], outcome)
            pool.shutdown()
        if outcome.is_over:
            break
    assert not outcome.failures, "\n\n".join(outcome.failures)
    assert outcome.done >= MUTANTS / 10


def make_database(spark: ThriftServer, star: Star, database: str) -> None:
    with closing(connect(spark.endpoint)) as session:
        run(session, f"CREATE DATABASE {database}")
        run(session, f"USE {database}")
        for table in star.tables:
            for statement in table.spark_statements():
                run(session, statement)
