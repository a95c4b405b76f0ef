"""Sessions of the demo and the benchmarks."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from support.server_statements import SETTLE_POLL_SECONDS, StatementPage

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

SECONDS = 40
# A thread of the server's that sleeps costs nothing.
SLEEPING = f"SELECT java_method('java.lang.Thread', 'sleep', {1_000 * SECONDS}L)"


@pytest.fixture
def ctrl_c_soon(spark: ThriftServer) -> Iterator[None]:
    """What Ctrl-C does, once the server has begun with what was asked."""
    page, is_over = StatementPage(spark.ui_url), threading.Event()
    earlier = len(page.states(SLEEPING))
    tester = threading.get_ident()

    def interrupt() -> None:
        while not is_over.wait(SETTLE_POLL_SECONDS):
            if len(page.states(SLEEPING)) > earlier:
                signal.pthread_kill(tester, signal.SIGALRM)
                return

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    yield
    is_over.set()
    interrupting.join()
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("ctrl_c_soon")
def test_ctrl_c_amid_a_statement_is_not_kept_waiting_nor_becomes_another_error(spark: ThriftServer) -> None:
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), closing(connect(spark.endpoint)) as session:
        run(session, SLEEPING)
    assert time.monotonic() - started < SECONDS
