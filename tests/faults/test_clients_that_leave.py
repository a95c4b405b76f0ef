"""A client may leave whenever it likes: its statements and sessions end on the server, and nothing else does."""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from fault_stage import DATABASE, JOIN, KEY_QUERY, NARROWED, Stage, fault_stage, make_tables, seen
from pyhive import hive
from support.beeline_clients import breakable_session
from support.fault_acts import First
from support.fault_proxy import Fault
from support.profile import DEEP
from thrift.Thrift import TException

from demo.hive import run
from demo.thrift_server import ThriftServer

# What ends far later than a test waits, unless somebody ends it.
LONG = "SELECT count(*) FROM range(0, 1000, 1, 4) WHERE reflect('java.lang.Thread', 'sleep', 200L + id) IS NULL"
PROMPTLY_S = 100

# A close after which the kernel answers with a reset, as for a process that was killed with unread data.
_ABORT = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    with fault_stage(spark, tmp_path_factory.mktemp("leaving")) as stage:
        yield stage


@pytest.fixture(autouse=True)
def nothing_is_left_behind(stage: Stage) -> Iterator[None]:
    with stage.nothing_left_behind():
        yield


def client_socket(session: hive.Connection) -> socket.socket:
    """The socket under a PyHive session."""
    found: socket.socket = session._transport._trans.handle  # noqa: SLF001 - it offers no other way
    return found


def goodbye(session: hive.Connection) -> None:
    client_socket(session).shutdown(socket.SHUT_RDWR)


def abort(session: hive.Connection) -> None:
    client_socket(session).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
    client_socket(session).close()


# In the quick run, those alone that begin the list: each query and each way of leaving once.
CALLS = [
    ("GetOperationStatus", "^DESCRIBE", goodbye),
    ("FetchResults", KEY_QUERY, abort),
    ("ExecuteStatement", NARROWED, abort),
    ("ExecuteStatement", KEY_QUERY, abort),
    ("GetOperationStatus", KEY_QUERY, goodbye),
    ("CloseOperation", KEY_QUERY, goodbye),
    ("FetchResults", NARROWED, goodbye),
]


@pytest.mark.parametrize(("name", "pattern", "leave"), CALLS if DEEP else CALLS[:3])
def test_a_client_that_leaves_while_a_call_is_on_its_way_leaves_nothing_behind(
    stage: Stage, name: str, pattern: str, leave: Callable[[hive.Connection], None]
) -> None:
    leaves_nothing(stage, name, pattern, leave)


def leaves_nothing(stage: Stage, name: str, pattern: str, leave: Callable[[hive.Connection], None]) -> None:
    """A client leaves while a call is on its way; the stage sees to what is left."""
    with breakable_session(stage.proxy.endpoint) as session:
        run(session, f"USE {DATABASE}")
        fault = Fault(First(lambda: leave(session)), name, pattern, times=1)
        with stage.middle.faulty(fault), suppress(TException, OSError):
            seen(session, JOIN)
    assert fault.done


@pytest.mark.parametrize("leave", [goodbye, abort])
def test_a_client_that_leaves_while_its_statement_runs_ends_the_statement(
    stage: Stage, leave: Callable[[hive.Connection], None]
) -> None:
    started = time.monotonic()
    with breakable_session(stage.proxy.endpoint) as session:
        cursor = session.cursor()
        cursor.execute(LONG, async_=True)
        assert cursor.poll().operationState in (0, 1, 7), "it runs, or is about to"
        leave(session)
    assert time.monotonic() - started < PROMPTLY_S


def test_a_client_that_leaves_while_it_fetches_leaves_nothing_behind(stage: Stage) -> None:
    with breakable_session(stage.proxy.endpoint) as session:
        cursor = session.cursor()
        cursor.execute("SELECT id, repeat('x', 100) FROM range(200000)")
        assert cursor.fetchone() is not None
        abort(session)
