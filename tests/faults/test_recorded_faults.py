"""All faults before a server that has Spark's answers recorded: each takes milliseconds, so that none is left out.

The tests of the same names on Spark meet one fault of each kind in the quick run, and all in the deep one.
`pytest tests/faults/test_recorded_faults.py tests/faults/test_backend_faults.py --update-goldens` records the
answers of Spark anew: first which statements come, then what Spark says to them.
"""

from collections.abc import Callable, Iterator

import pytest
from fault_stage import Stage, fault_stage
from pyhive import hive
from recorded_server import (
    Recorded,
    RecordedServer,
    read_recording,
    recorded_server,
    write_recording,
)
from support.fault_proxy import Act
from test_backend_faults import (
    expected,
    nothing_is_left_behind,
    own,
    script,
    test_a_backend_that_is_gone_ends_the_connection_with_no_answer_or_the_right_one,
    test_a_call_of_the_proxys_own_that_goes_wrong_is_not_seen_by_the_client,
    test_a_rewritten_statement_that_fails_is_answered_all_the_same,
    test_a_users_own_mistake_is_the_error_that_it_is_directly,
)
from test_clients_that_leave import (
    CALLS,
    leaves_nothing,
    test_a_client_that_leaves_while_its_statement_runs_ends_the_statement,
)
from test_slow_and_large import EVERY_LATE, LARGE, given_up, narrowed_again, not_held

pytestmark = pytest.mark.costly

# Collected here too, before the recorded server.
__all__ = [
    "expected",
    "nothing_is_left_behind",
    "own",
    "script",
    "test_a_backend_that_is_gone_ends_the_connection_with_no_answer_or_the_right_one",
    "test_a_call_of_the_proxys_own_that_goes_wrong_is_not_seen_by_the_client",
    "test_a_client_that_leaves_while_its_statement_runs_ends_the_statement",
    "test_a_rewritten_statement_that_fails_is_answered_all_the_same",
    "test_a_users_own_mistake_is_the_error_that_it_is_directly",
]

DEADLINE_S = 0.5
LATE_S = 1.0


@pytest.fixture(scope="module")
def server(*, updating: bool) -> Iterator[RecordedServer]:
    known = read_recording()
    with recorded_server(known) as server:
        yield server
    unknown = dict.fromkeys(server.handler.unknown, Recorded())
    if updating:
        write_recording({**known, **unknown})
    else:
        assert not unknown, "record what the proxy asks now: --update-goldens"


@pytest.fixture(scope="module")
def stage(server: RecordedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # What fails in one test is not to be left alone in the next.
    forgiving = ("--set", "rewrite.quarantine_s=0.001")
    with fault_stage(server, tmp_path_factory.mktemp("recorded"), *forgiving) as stage:
        yield stage


@pytest.fixture(scope="module")
def hasty_stage(server: RecordedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """With little time for queries of the proxy's own."""
    settings = (
        f"rewrite.key_query_deadline_s={DEADLINE_S}",
        f"catalog.query_deadline_s={DEADLINE_S}",
        "rewrite.quarantine_s=0.001",
    )
    options = [word for setting in settings for word in ("--set", setting)]
    with fault_stage(server, tmp_path_factory.mktemp("hasty"), *options) as stage:
        yield stage


@pytest.mark.parametrize(("name", "pattern", "leave"), CALLS)
def test_a_client_that_leaves_while_a_call_is_on_its_way_leaves_nothing_behind(
    stage: Stage, name: str, pattern: str, leave: Callable[[hive.Connection], None]
) -> None:
    leaves_nothing(stage, name, pattern, leave)


@pytest.mark.parametrize(("pattern", "name"), EVERY_LATE)
def test_a_query_of_the_proxys_own_that_is_late_is_given_up(hasty_stage: Stage, pattern: str, name: str) -> None:
    with hasty_stage.nothing_left_behind():
        given_up(hasty_stage, pattern, name, LATE_S)


def test_after_a_late_description_one_of_the_next_statements_is_narrowed(hasty_stage: Stage) -> None:
    narrowed_again(hasty_stage, LATE_S)


@pytest.mark.parametrize("what", LARGE)
def test_an_answer_of_a_hundred_megabytes_is_not_held(stage: Stage, what: str) -> None:
    name, act = LARGE[what]
    assert isinstance(act, Act)
    not_held(stage, name, act)
