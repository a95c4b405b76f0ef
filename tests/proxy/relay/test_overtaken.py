"""A rewritten statement whose session or tables change before its answer is there."""

import pytest
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    execute,
    execute_and_wait,
    executed,
    fetch,
    get_status,
    metadata_is,
    operation_call,
    reply,
    status_is,
)
from support.statement_play import (
    ERROR,
    FINISHED,
    OURS,
    RUNNING,
    THEIRS,
    Play,
    own_close,
    play_over,
    plays_with,
    refused,
    running,
    synchronous,
)

from proxy.operations.dispatch import Outcome, OutcomeKind, Premises
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.reply_tracker import WATCHED_REPLY_BYTES_MAX
from proxy.relay.commands import Close
from proxy.wire.hs2.calls import OperationHandle, OperationState, encode_failure, encode_still_running
from proxy.wire.thrift.frames import frame

CHECK_FAILED = "the keys in this statement have changed"
LONG_ROWS = frame(bytes(WATCHED_REPLY_BYTES_MAX + 1))


class World:
    """Premises that a test sets."""

    is_session_unchanged = are_tables_unchanged = True

    @property
    def premises(self) -> Premises:
        return Premises(lambda: self.is_session_unchanged, lambda: self.are_tables_unchanged)

    def change(self, *what: str) -> None:
        for each in what:
            setattr(self, each, False)


CHANGES = ["is_session_unchanged", "are_tables_unchanged"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["whole", "bytes", "HTTP"])
def play(request: pytest.FixtureRequest) -> Play:
    return play_over(request.param)


@pytest.fixture(params=["whole", "bytes"])
def binary(request: pytest.FixtureRequest) -> Play:
    return play_over(request.param)


def in_background(play: Play, world: World, fall_back_on: str = "") -> Play:
    return running(play, premises=world.premises, fall_back_on=fall_back_on)


def fall_back(play: Play, call: bytes, shown: bytes, then: bytes) -> None:
    """The reply `shown` to `call` reaches nobody, and the statement has another operation."""
    play.asks(call)
    play.falls_back(shown, then)


def rows(seqid: int) -> bytes:
    return reply("FetchResults", seqid)


def asks_for_columns(seqid: int, operation: OperationHandle = OPERATION) -> bytes:
    return operation_call("GetResultSetMetadata", seqid, operation)


# --- which reply shows it


@pytest.mark.parametrize("change", CHANGES)
def test_an_overtaken_answer_is_replaced_by_that_of_a_second_run(play: Play, world: World, change: str) -> None:
    in_background(play, world).passes(get_status(6), status_is(RUNNING, 6))
    world.change(change)
    fall_back(play, get_status(7), status_is(FINISHED, 7), get_status(7, AGAIN))
    play.gets(status_is(RUNNING, 7))
    play.passes(get_status(8), status_is(FINISHED, 8), get_status(8, AGAIN))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]
    play.passes(fetch(9), rows(9), fetch(9, AGAIN))


@pytest.mark.parametrize("change", CHANGES)
def test_an_overtaken_synchronous_statement_falls_back_and_its_operation_closed(
    play: Play, world: World, change: str
) -> None:
    synchronous(play, premises=world.premises)
    world.change(change)
    play.closes_first(executed(5), execute_and_wait("SELECT 1", 5))
    play.gets(executed(5, AGAIN))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]
    play.passes(fetch(6, AGAIN), rows(6))


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_are_asked_for_without_a_look_at_the_status_are_judged_too(
    play: Play, world: World, change: str
) -> None:
    in_background(play, world)
    world.change(change)
    fall_back(play, fetch(6), rows(6), get_status(1, AGAIN))
    play.answers(status_is(FINISHED, 1), back=fetch(6, AGAIN))
    play.gets(rows(6))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]


def test_columns_are_not_asked_for_before_the_second_run_has_finished(play: Play, world: World) -> None:
    """Spark would make some up, and say the same for ever."""
    in_background(play, world)
    world.change("is_session_unchanged")
    fall_back(play, asks_for_columns(6), metadata_is("k", "int", 6), get_status(1, AGAIN))
    play.answers(status_is(RUNNING, 1), back=get_status(1, AGAIN))
    play.answers(status_is(FINISHED, 1), back=asks_for_columns(6, AGAIN))
    play.gets(metadata_is("j", "int", 6))


# --- which changes count


def test_a_change_after_the_finished_status_does_not_matter(play: Play, world: World) -> None:
    in_background(play, world).passes(get_status(6), status_is(FINISHED, 6))
    world.change(*CHANGES)
    play.passes(asks_for_columns(7), metadata_is("k", "int", 7))
    play.passes(fetch(8), rows(8))
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


def test_a_session_that_changes_after_the_columns_were_told_does_not_matter(play: Play, world: World) -> None:
    in_background(play, world).passes(asks_for_columns(6), metadata_is("k", "int", 6))
    world.change("is_session_unchanged")
    play.passes(get_status(7), status_is(FINISHED, 7))


@pytest.mark.parametrize(
    ("columns", "change"),
    [
        (metadata_is("Result", "string", 6), "is_session_unchanged"),
        (metadata_is("k", "unheard of", 6), "is_session_unchanged"),
        (reply("GetResultSetMetadata", 6, status=3, message="not yet"), "is_session_unchanged"),
        (metadata_is("k", "int", 6), "are_tables_unchanged"),
    ],
    ids=["Spark makes them up", "of a kind that is not read", "refused", "the tables change"],
)
def test_other_columns_tell_nothing_and_none_keep_tables_as_they_are(
    play: Play, world: World, columns: bytes, change: str
) -> None:
    in_background(play, world).passes(asks_for_columns(6), columns)
    world.change(change)
    fall_back(play, get_status(7), status_is(FINISHED, 7), get_status(7, AGAIN))


@pytest.mark.parametrize(
    "state", [RUNNING, OperationState.PENDING, OperationState.CANCELED, OperationState.TIMEDOUT]
)
@pytest.mark.parametrize("change", CHANGES)
def test_a_statement_without_an_answer_yet_or_for_ever_does_not_fall_back(
    play: Play, world: World, change: str, state: OperationState
) -> None:
    in_background(play, world)
    world.change(change)
    play.passes(get_status(6), status_is(state, 6))


def test_rows_that_are_asked_for_too_early_are_refused_and_nothing_else(play: Play, world: World) -> None:
    in_background(play, world)
    early = reply("FetchResults", 6, status=3, message="Expected state FINISHED, but found RUNNING")
    play.passes(fetch(6), early)
    assert play.outcomes == []
    play.passes(get_status(7), status_is(FINISHED, 7))


def test_a_statement_that_only_went_as_the_original_is_never_dropped(play: Play, world: World) -> None:
    play.executes(execute("SELECT 1", 5), execute("SELECT 1", 5), "SELECT 1", premises=world.premises)
    play.gets(executed(5))
    world.change(*CHANGES)
    play.passes(get_status(6), status_is(FINISHED, 6))
    play.passes(fetch(7), rows(7))


# --- failures in a session that has changed


def test_a_failure_in_a_session_that_has_changed_is_answered_by_a_second_run(play: Play, world: World) -> None:
    """Without us, the statement may have been analysed after the change as well."""
    in_background(play, world, fall_back_on=CHECK_FAILED)
    world.change("is_session_unchanged")
    fall_back(play, get_status(6), status_is(ERROR, 6, CHECK_FAILED), get_status(6, AGAIN))
    play.gets(status_is(FINISHED, 6))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5, CHECK_FAILED)]


def with_columns_told(play: Play, world: World) -> Play:
    """The client knows the columns of an answer that another statement's session would not give."""
    in_background(play, world, fall_back_on=CHECK_FAILED)
    play.passes(asks_for_columns(6), metadata_is("k", "int", 6))
    world.change("is_session_unchanged")
    return play


def test_a_failed_check_is_never_shown_as_it_is(play: Play, world: World) -> None:
    with_columns_told(play, world).is_refused(get_status(7), status_is(ERROR, 7, CHECK_FAILED))


def test_the_users_own_error_is_shown_where_the_statement_cannot_fall_back(play: Play, world: World) -> None:
    failure = status_is(ERROR, 7, THEIRS)
    with_columns_told(play, world).passes(get_status(7), failure)


# --- an answer that is dropped and cannot be replaced


def test_an_overtaken_answer_is_refused_for_good_where_the_session_means_something_else(
    play: Play, world: World
) -> None:
    with_columns_told(play, world)
    world.change("are_tables_unchanged")
    play.is_refused(get_status(7), status_is(FINISHED, 7))
    assert play.kinds == [OutcomeKind.FAILED]
    for call, answer in (
        (get_status(8), status_is(FINISHED, 8)),
        (fetch(8), rows(8)),
        (fetch(8), reply("FetchResults", 8, status=3, message=OURS)),
        (asks_for_columns(8), metadata_is("k", "int", 8)),
    ):
        play.is_refused(call, answer)
    play.asks(operation_call("CloseOperation", 9))


def test_it_is_refused_where_there_are_too_many_aliases(world: World) -> None:
    world.change("is_session_unchanged")
    for play in plays_with(LocalOperationAliases(0)):
        in_background(play, world).is_refused(get_status(6), status_is(FINISHED, 6))
        assert play.kinds == [OutcomeKind.FAILED]


def test_it_is_refused_where_the_client_has_called_on(binary: Play, world: World) -> None:
    in_background(binary, world).asks(get_status(6))
    world.change("is_session_unchanged")
    binary.asks(fetch(7))
    binary.withholds(get_status(6), status_is(FINISHED, 6))
    binary.withholds(fetch(7), rows(7))


def test_a_synchronous_answer_that_is_refused_leaves_no_operation(binary: Play, world: World) -> None:
    synchronous(binary, premises=world.premises)
    world.change("is_session_unchanged")
    binary.asks(get_status(6, AGAIN))
    binary.withholds(execute_and_wait("SELECT 1", 5), executed(5), back=own_close(OPERATION))
    assert binary.kinds == [OutcomeKind.FAILED]


def test_it_is_refused_after_the_second_run_was_refused(play: Play, world: World) -> None:
    in_background(play, world).asks(get_status(6))
    world.change("is_session_unchanged")
    play.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    play.withholds(get_status(6), refused(5, THEIRS))
    assert play.kinds == [OutcomeKind.FAILED]
    play.is_refused(fetch(7), rows(7))


@pytest.mark.parametrize("says_that_it_runs", [False, True])
def test_a_cancelled_statement_is_judged_until_it_is_closed(
    play: Play, world: World, *, says_that_it_runs: bool
) -> None:
    """The cancel may come too late, for rows that are there, although a status says that the statement runs."""
    in_background(play, world).passes(operation_call("CancelOperation", 6), reply("CancelOperation", 6))
    if says_that_it_runs:
        play.passes(get_status(7), status_is(RUNNING, 7))
    world.change("are_tables_unchanged")
    play.is_refused(fetch(8), rows(8))
    assert play.kinds == [OutcomeKind.UNKNOWN]


def test_rows_too_long_to_be_kept_end_the_connection(world: World) -> None:
    play = in_background(play_over("whole"), world)
    world.change("are_tables_unchanged")
    play.asks(fetch(6))
    assert [type(command) for command in play.answers(LONG_ROWS[:1000])] == [Close]


def test_rows_too_long_to_be_kept_are_refused_over_http(world: World) -> None:
    play = in_background(play_over("HTTP"), world)
    world.change("are_tables_unchanged")
    play.is_refused(fetch(6), LONG_ROWS)


@pytest.mark.parametrize("transport", ["whole", "HTTP"])
def test_rows_too_long_to_be_kept_pass_where_nothing_has_changed(transport: str, world: World) -> None:
    play = in_background(play_over(transport), world)
    play.passes(fetch(6), LONG_ROWS)
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


# --- more than one connection


@pytest.mark.parametrize("shown", [status_is(FINISHED, 6), status_is(ERROR, 6, OURS)], ids=["overtaken", "failed"])
def test_what_another_connection_asks_of_the_first_run_meanwhile_is_not_answered_by_it(
    play: Play, world: World, shown: bytes
) -> None:
    other = in_background(play, world).second()
    for call in (get_status(6), get_status(6), fetch(7), asks_for_columns(8)):
        other.asks(call)
    world.change("is_session_unchanged")
    fall_back(play, get_status(6), shown, get_status(6, AGAIN))
    not_yet = "Expected state FINISHED, but found RUNNING"
    for answer, instead in (
        (status_is(FINISHED, 6), encode_still_running(6)),
        (status_is(ERROR, 6, OURS), encode_still_running(6)),
        (rows(7), encode_failure("FetchResults", 7, not_yet)),
        (metadata_is("k", "int", 8), encode_failure("GetResultSetMetadata", 8, not_yet)),
    ):
        other.answers(answer, to_client=frame(instead))
    assert play.outcomes == []
    # Calls from now on are about the second run.
    other.passes(get_status(9), status_is(FINISHED, 9), get_status(9, AGAIN))
    assert len(play.outcomes) == 1


def test_what_another_connection_asks_during_the_fallback_is_not_its_end(play: Play, world: World) -> None:
    other = in_background(play, world).second()
    other.asks(get_status(6))
    world.change("is_session_unchanged")
    play.asks(get_status(6))
    play.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    other.answers(status_is(FINISHED, 6), to_client=frame(encode_still_running(6)))
    play.runs_again(get_status(6, AGAIN))
    play.gets(status_is(FINISHED, 6))
    assert play.kinds == [OutcomeKind.OVERTAKEN]


def test_what_is_dropped_stays_so_when_the_connection_that_runs_it_again_ends(binary: Play, world: World) -> None:
    other = in_background(binary, world).second()
    world.change("is_session_unchanged")
    binary.asks(get_status(6))
    binary.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    binary.leaves()
    other.is_refused(fetch(7), rows(7))


def test_our_own_failure_in_a_session_that_has_changed_is_not_shown_either(play: Play, world: World) -> None:
    synchronous(play, premises=world.premises)
    world.change("is_session_unchanged")
    play.answers(refused(5, OURS), back=execute_and_wait("SELECT 1", 5))
    play.gets(executed(5))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5, OURS)]
