"""Answers to the proxy's own queries that come late or are too much: given up in time, and without memory."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stage import JOIN, KEY_QUERY, NARROWED, Stage, fault_stage, make_tables, seen
from replies_made import batch, strings
from support.fault_acts import Refuse, Replace, Slow
from support.fault_proxy import Act, Fault
from support.profile import DEEP, only_deep

from demo.thrift_server import ThriftServer

DEADLINE_S = 1
LATE_S = 4.0 if DEEP else 2.0
# A reply that is late once is waited for; what would follow it is not asked any more.
PROMPTLY_S = 50

MANY_KEYS = [b"x" * 1_000] * 100_000
# Less than a third of what the answers hold.
GROWTH_BYTES_MAX = 32 * 1024 * 1024


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    options = (f"rewrite.key_query_deadline_s={DEADLINE_S}", f"catalog.query_deadline_s={DEADLINE_S}")
    settings = [word for option in (*options, "rewrite.quarantine_s=0.001") for word in ("--set", option)]
    with fault_stage(spark, tmp_path_factory.mktemp("slow"), *settings) as stage:
        yield stage


@pytest.fixture(scope="module")
def patient_stage(stage: Stage, spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The same tables, and queries of the proxy's own that come to their end on a busy machine too."""
    assert stage.server is spark
    with fault_stage(spark, tmp_path_factory.mktemp("large"), "--set", "rewrite.quarantine_s=0.001") as patient:
        yield patient


@pytest.fixture(autouse=True)
def nothing_is_left_behind(stage: Stage) -> Iterator[None]:
    with stage.nothing_left_behind():
        yield


PATTERNS = ("^DESCRIBE", KEY_QUERY, "^SHOW PARTITIONS")
NAMES = ("GetOperationStatus", "FetchResults", "ExecuteStatement")
# In the quick run, each query and each call is late once.
EVERY_LATE = [(pattern, name) for pattern in PATTERNS for name in NAMES]
LATE = EVERY_LATE if DEEP else [*zip(PATTERNS, NAMES, strict=True)]


@pytest.mark.parametrize(("pattern", "name"), LATE)
def test_a_query_of_the_proxys_own_that_is_late_is_given_up(stage: Stage, pattern: str, name: str) -> None:
    given_up(stage, pattern, name, LATE_S)


def given_up(stage: Stage, pattern: str, name: str, late_s: float) -> None:
    """The client has its answer though a call of the proxy's own is late."""
    expected = stage.directly(JOIN)
    slow = Fault(Slow(late_s), name, pattern, times=1)
    with stage.proxied() as session:
        stage.forget(session)
        started = time.monotonic()
        with stage.middle.faulty(slow):
            assert seen(session, JOIN) == expected
        assert time.monotonic() - started < PROMPTLY_S


@only_deep("test_recorded_faults has it without Spark")
def test_after_a_late_description_one_of_the_next_statements_is_narrowed(stage: Stage) -> None:
    narrowed_again(stage, LATE_S)


def narrowed_again(stage: Stage, late_s: float) -> None:
    """Before descriptions expire: on a busy machine the second one may be late too."""
    expected, slow = stage.directly(JOIN), Fault(Slow(late_s), "ExecuteStatement", "^DESCRIBE", times=1)
    with stage.proxied() as session:
        stage.forget(session)
        with stage.middle.faulty(slow):
            assert seen(session, JOIN) == expected
        assert slow.done
        stage.middle.calls.clear()
        started = time.monotonic()
        while not stage.middle.executed(NARROWED):
            assert seen(session, JOIN) == expected
            assert time.monotonic() - started < PROMPTLY_S


def peak_bytes(stage: Stage) -> int:
    """The most memory that the proxy has ever had."""
    status = Path(f"/proc/{stage.proxy.child.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


LARGE: dict[str, tuple[str, Act]] = {
    "rows": ("FetchResults", Replace(lambda call: batch(call, strings(MANY_KEYS), strings(MANY_KEYS)))),
    "an error": ("ExecuteStatement", Refuse("x" * 100_000_000)),
}


@only_deep("test_recorded_faults has it without Spark")
@pytest.mark.parametrize("what", LARGE)
def test_an_answer_of_a_hundred_megabytes_is_not_held(patient_stage: Stage, what: str) -> None:
    not_held(patient_stage, *LARGE[what])


def not_held(patient_stage: Stage, name: str, act: Act) -> None:
    """The proxy's memory does not grow by what is answered."""
    expected = patient_stage.directly(JOIN)
    large = Fault(act, name, KEY_QUERY, times=1)
    with patient_stage.proxied() as session:
        assert seen(session, JOIN) == expected
        before = peak_bytes(patient_stage)
        with patient_stage.middle.faulty(large):
            assert seen(session, JOIN) == expected
    assert large.done
    assert peak_bytes(patient_stage) - before < GROWTH_BYTES_MAX
