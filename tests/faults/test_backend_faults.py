"""Whatever the backend does, a client sees what it would see without us, or its connection ends as it would."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise

import pytest
from fault_stage import DATABASE, JOIN, NARROWED, QUOTING_JOIN, Seen, Stage, fault_stage, make_tables, seen
from recorded_server import Recorded, read_recording, record, write_recording
from replies_made import batch, doubles, strings
from support.beeline_clients import breakable_session
from support.fault_acts import Cut, Moment, Refuse, Replace, Throw
from support.fault_proxy import Act, Fault
from support.fault_proxy import Seen as SeenCall
from support.profile import DEEP
from thrift.Thrift import TException

from demo.hive import run
from demo.thrift_server import ThriftServer

# Far more than any of this takes, far less than a user would wait.
PROMPTLY_S = 100
# INITIALIZED, RUNNING and PENDING.
RUNNING_STATES = (0, 1, 7)
# In the quick run, a kind of fault meets one call of the conversation, so many after the one of the last kind.
QUICK_STRIDE = 7
MISTAKEN = JOIN.replace("f.v", "f.no_such_column")
# What tells the statements of a conversation apart.
STATEMENT_CHARS_MATCHED = 20


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    # What fails in one test is not to be left alone in the next.
    forgiving = ("--set", "rewrite.quarantine_s=0.001")
    with fault_stage(spark, tmp_path_factory.mktemp("faults"), *forgiving) as stage:
        yield stage


@pytest.fixture(autouse=True)
def nothing_is_left_behind(stage: Stage) -> Iterator[None]:
    with stage.nothing_left_behind():
        yield
        stage.middle.faults = []


@dataclass(frozen=True)
class Step:
    """One call of a conversation: its name, the statement that it is about, and the how manieth such it is."""

    name: str
    pattern: str
    skip: int

    def fault(self, act: Act) -> Fault:
        return Fault(act, self.name, self.pattern, skip=self.skip, times=1)


def conversation(stage: Stage) -> list[SeenCall]:
    """Every call of a session that asks for everything, in order."""
    stage.middle.calls.clear()
    with stage.proxied() as session:
        stage.forget(session)
        stage.middle.calls.clear()
        assert seen(session, QUOTING_JOIN) == stage.directly(QUOTING_JOIN)
        calls = list(stage.middle.calls)
    # A query that takes long is asked about again, which it need not be the next time.
    asked_again = [call.name == "GetOperationStatus" and call == before for before, call in pairwise(calls)]
    return [call for call, again in zip(calls, [False, *asked_again], strict=True) if not again]


def steps(calls: list[SeenCall]) -> list[Step]:
    """The calls of a conversation, each as a fault finds it again: the first or the second of its kind."""
    found: list[Step] = []
    for call in calls:
        pattern = "^" + re.escape(call.statement[:STATEMENT_CHARS_MATCHED])
        skip = sum((step.name, step.pattern) == (call.name, pattern) for step in found)
        found.append(Step(call.name, pattern, skip))
    return found


def some(stage: Stage, found: list[Step], offset: int) -> list[Step]:
    """All of them in the deep run and without Spark, else one: each offset has another."""
    return found if DEEP or stage.is_recorded else [found[offset * QUICK_STRIDE % len(found)]]


@pytest.fixture(scope="module")
def script(stage: Stage) -> list[Step]:
    """A conversation from its first statement on; what comes before it is PyHive choosing the database."""
    return steps(conversation(stage))


@pytest.fixture(scope="module")
def own(script: list[Step]) -> list[Step]:
    """The calls that the proxy makes on its own account."""
    clients = "^" + re.escape(QUOTING_JOIN[:STATEMENT_CHARS_MATCHED])
    return [step for step in script if step.pattern not in ("^", clients)]


@pytest.fixture(scope="module")
def expected(stage: Stage) -> Seen:
    return stage.directly(QUOTING_JOIN)


OWN_FAULTS: dict[str, Act] = {
    "is refused": Refuse("[INTERNAL_ERROR] the metastore is not there"),
    "throws": Throw(),
    "is refused at length": Refuse("at length " * 1_000_000),
    "answers no rows and columns": Replace(batch),
    "answers with a column of another type": Replace(lambda call: batch(call, doubles([b"\x7f\xf8" + bytes(6)]))),
    "answers with more than was asked": Replace(lambda call: batch(call, *[strings([b"d10"] * 20_000)] * 3)),
    "answers with text that is no text": Replace(lambda call: batch(call, strings([b"\xff\xfe"]))),
}


@pytest.mark.parametrize("what", OWN_FAULTS)
def test_a_call_of_the_proxys_own_that_goes_wrong_is_not_seen_by_the_client(
    stage: Stage, own: list[Step], expected: Seen, what: str
) -> None:
    act, wrong = OWN_FAULTS[what], []
    for step in some(stage, own, list(OWN_FAULTS).index(what)):
        fault = step.fault(act)
        # A session asks who it is once, and asks no more for a list that it was refused.
        with stage.proxied() as session:
            stage.forget(session)
            with stage.middle.faulty(fault):
                found = seen(session, QUOTING_JOIN)
        if found != expected or not fault.done:
            wrong.append((step, fault.done, found))
    assert not wrong


REFUSALS = {
    "a partition filter that is too much for the metastore": Refuse(
        "MetaException: INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER Statement too complex"
    ),
    "the text of the statement three times, which is long": Refuse("as it was sent " * 80_000),
}


@pytest.mark.parametrize("what", REFUSALS)
@pytest.mark.parametrize("name", ["ExecuteStatement", "GetOperationStatus", "FetchResults"])
def test_a_rewritten_statement_that_fails_is_answered_all_the_same(
    stage: Stage, expected: Seen, name: str, what: str
) -> None:
    fault = Fault(REFUSALS[what], name, NARROWED, times=1)
    with stage.proxied() as session, stage.middle.faulty(fault), closing(session.cursor()) as cursor:
        cursor.execute(QUOTING_JOIN, async_=name == "GetOperationStatus")
        while name == "GetOperationStatus" and cursor.poll().operationState in RUNNING_STATES:
            pass
        rows = Counter(map(repr, cursor.fetchall()))
    assert fault.done
    assert rows == expected[1][1]


def test_a_users_own_mistake_is_the_error_that_it_is_directly(stage: Stage) -> None:
    with stage.proxied() as session:
        assert seen(session, MISTAKEN) == stage.directly(MISTAKEN)


@pytest.mark.parametrize("moment", Moment)
def test_a_backend_that_is_gone_ends_the_connection_with_no_answer_or_the_right_one(
    stage: Stage, script: list[Step], expected: Seen, moment: Moment
) -> None:
    wrong: list[object] = []
    for step in some(stage, script, list(Moment).index(moment)):
        fault = step.fault(Cut(moment))
        started = time.monotonic()
        with breakable_session(stage.proxy.endpoint) as session:
            run(session, f"USE {DATABASE}")
            stage.forget(session)
            with stage.middle.faulty(fault), suppress(TException, OSError):
                found = seen(session, QUOTING_JOIN)
                if found != expected:
                    wrong.append((step, found))
        if not fault.done or time.monotonic() - started > PROMPTLY_S:
            wrong.append((step, fault.done, time.monotonic() - started))
    assert not wrong


def test_the_recorded_answers_are_those_of_spark(stage: Stage, *, updating: bool) -> None:
    texts = executed(stage) if updating else list(read_recording())
    with stage.direct() as session:
        found = {text: record(session, text) for text in texts}
    if updating:
        write_recording(found)
    known = read_recording()
    assert {text: comparable(text, end) for text, end in found.items()} == {
        text: comparable(text, end) for text, end in known.items()
    }


def executed(stage: Stage) -> list[str]:
    """All that the server is asked to execute by the tests of faults."""
    stage.middle.calls.clear()
    for sql in (QUOTING_JOIN, JOIN, MISTAKEN):
        with stage.proxied() as session:
            stage.forget(session)
            assert seen(session, sql) == stage.directly(sql)
    texts = stage.middle.executed("")
    return list(dict.fromkeys([*read_recording(), *texts, QUOTING_JOIN, JOIN, MISTAKEN]))


def comparable(text: str, end: Recorded) -> object:
    """The end of a statement without times, places and settings of one server."""
    columns = [(column.name, column.type_id, column.kind) for column in end.columns]
    if text == "SET" or text.startswith("DESCRIBE") or end.message:
        return columns, bool(end.message), end.sql_state
    return columns, sorted(zip(*(column.values for column in end.columns), strict=True))
