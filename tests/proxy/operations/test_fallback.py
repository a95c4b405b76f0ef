"""A rewritten statement that fails, and what its client sees of it."""

from collections.abc import Callable

import pytest
from support.relay_dialogue import (
    AGAIN,
    ERROR_CODE,
    OPERATION,
    SESSION,
    THIRD,
    Dialogue,
    close_session,
    execute,
    execute_and_wait,
    executed,
    fetch,
    fetch_log,
    get_status,
    operation_call,
    refused_for,
    reply,
    status_is,
)
from support.statement_play import (
    CANCELED,
    ERROR,
    FINISHED,
    OURS,
    RUNNING,
    THEIRS,
    Play,
    failing,
    falls_back_in_background,
    in_background,
    own_close,
    play_over,
    play_with,
    plays_with,
    refused,
    running,
    synchronous,
)

from proxy.operations.dispatch import Outcome, OutcomeKind, Premises, Refusal
from proxy.operations.events import StatementPassed
from proxy.operations.fallback_policy import FALLBACK_WITHIN_S
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.reply_tracker import WATCHED_REPLY_BYTES_MAX
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX, TrackedStatements
from proxy.relay.client_buffer import WAITING_BYTES_MAX
from proxy.relay.commands import BackendReply, Close, TurnedTransparent
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import (
    OperationHandle,
    OperationId,
    OperationState,
    encode_failure,
    encode_still_running,
)
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.types import MessageType
from proxy.wire.thrift.writer import Writer


# Whole messages, single bytes, and something between; and over HTTP.
@pytest.fixture(params=["whole", "bytes", "sevens", "HTTP"])
def play(request: pytest.FixtureRequest) -> Play:
    return play_over(request.param)


@pytest.fixture(params=["whole", "bytes", "sevens"])
def binary(request: pytest.FixtureRequest) -> Play:
    """Of what only a connection has: calls behind one another, and a stream of replies."""
    return play_over(request.param)


def exception(name: str, seqid: int) -> bytes:
    return frame(Writer().header(name, MessageType.EXCEPTION, seqid).stop().to_bytes())


# --- a client that waits for the statement's end


@pytest.mark.parametrize(
    ("answer", "end"),
    [(executed(5), OutcomeKind.RECOVERED), (refused(5, THEIRS), OutcomeKind.FAILED_TWICE)],
    ids=["works", "fails too"],
)
def test_a_synchronous_statement_that_fails_falls_back_and_only_that_answer_is_seen(
    play: Play, answer: bytes, end: OutcomeKind
) -> None:
    synchronous(play).answers(refused(5), back=execute_and_wait("SELECT 1", 5))
    play.gets(answer)
    assert play.outcomes == [Outcome(end, 2.5, OURS)]
    play.passes(fetch(6), reply("FetchResults", 6))


def test_a_statement_in_the_background_that_is_refused_at_once_is_executed_again(play: Play) -> None:
    play.executes(execute("SELECT 1", 5), execute("SELECT 2", 5))
    play.answers(refused(5), back=execute("SELECT 1", 5))
    play.gets(executed(5, AGAIN))
    play.asks(get_status(6, AGAIN))
    assert play.outcomes == []
    play.gets(status_is(ERROR, 6, THEIRS))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED_TWICE, 2.5, OURS)]


# --- a client that asks for the statement's end


def test_a_statement_that_fails_in_the_background_falls_back_behind_its_own_handle(play: Play) -> None:
    falls_back_in_background(play).gets(status_is(RUNNING, 6))
    play.passes(get_status(7), status_is(FINISHED, 7), get_status(7, AGAIN))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5, OURS)]
    play.passes(fetch(8), reply("FetchResults", 8), fetch(8, AGAIN))


def test_the_log_is_told_both_operations_as_they_come(play: Play) -> None:
    first, second = spark_handle(b"\x01"), spark_handle(b"\x02")
    play.executes(execute("SELECT 1", 5), execute("SELECT 2", 5))
    play.gets(executed(5, first))
    assert play.spark_ids == ["01010101-0101-0101-0101-010101010101"]
    play.asks(get_status(6, first))
    play.answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    play.answers(executed(5, second), back=own_close(first))
    assert play.spark_ids[1:] == ["02020202-0202-0202-0202-020202020202"]


def spark_handle(byte: bytes) -> OperationHandle:
    """An operation's handle as Spark has it, with halves of sixteen bytes."""
    identifier = Writer().struct(1).binary(1, byte * 16).binary(2, bytes(16)).stop().stop()
    return OperationHandle(identifier.to_bytes())


@pytest.mark.parametrize("name", ["GetResultSetMetadata", "CancelOperation", "GetQueryId", "CloseImpalaOperation"])
def test_every_later_call_about_it_goes_to_the_new_operation(play: Play, name: str) -> None:
    falls_back_in_background(play).gets(status_is(RUNNING, 6))
    play.asks(operation_call(name, 7), operation_call(name, 7, AGAIN))


@pytest.mark.parametrize("transport", ["whole", "HTTP"])
def test_the_finished_status_of_a_fallback_is_answered_without_the_backend(transport: str) -> None:
    play = falls_back_in_background(play_over(transport))
    play.gets(status_is(FINISHED, 6))
    play.says(get_status(7), back=status_is(FINISHED, 7))


def test_a_closed_operation_is_known_by_its_own_handle_again(play: Play) -> None:
    falls_back_in_background(play).gets(status_is(FINISHED, 6))
    close = operation_call("CloseOperation", 7)
    play.passes(close, reply("CloseOperation", 7), operation_call("CloseOperation", 7, AGAIN))
    play.passes(get_status(8), status_is(ERROR, 8))


def test_a_fallback_that_fails_in_the_background_shows_its_own_error(play: Play) -> None:
    falls_back_in_background(play).gets(status_is(ERROR, 6, THEIRS))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED_TWICE, 2.5, OURS)]


@pytest.mark.parametrize("answer", [refused(5, THEIRS), reply("ExecuteStatement", 5)], ids=["no", "nothing"])
def test_a_fallback_that_cannot_start_in_the_background_leaves_the_first_failure(
    play: Play, answer: bytes
) -> None:
    failing(play).answers(answer, to_client=status_is(ERROR, 6, OURS))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED, 2.5, OURS)]
    assert not play.is_known
    play.passes(operation_call("CloseOperation", 7), reply("CloseOperation", 7))


@pytest.mark.parametrize("transport", ["whole", "HTTP"])
def test_a_fallback_whose_reply_is_too_long_leaves_the_first_failure(transport: str) -> None:
    too_long = frame(bytes(CONTROL_REPLY_BYTES_MAX + 1))
    failing(play_over(transport)).answers(too_long, to_client=status_is(ERROR, 6, OURS))


def test_what_a_client_sends_during_a_fallback_waits_for_its_end(binary: Play) -> None:
    failing(binary).says(fetch(7))
    binary.runs_again(get_status(6, AGAIN) + fetch(7, AGAIN))


def test_a_client_that_keeps_sending_during_a_fallback_is_paused() -> None:
    assert failing(play_over("whole")).says(fetch() * (WAITING_BYTES_MAX // len(fetch()) + 1)) != []


# --- a client that fetches what is computed as it is fetched


def finished(play: Play) -> Play:
    in_background(play).gets(status_is(FINISHED, 6))
    play.dialogue.now = 20.0
    return play


def no_rows(seqid: int, message: str = OURS) -> bytes:
    return reply("FetchResults", seqid, status=3, message=message)


def test_a_failure_at_the_first_fetch_is_answered_with_the_rows_of_a_second_run(play: Play) -> None:
    finished(play)
    assert play.outcomes == []
    play.asks(fetch(7))
    play.falls_back(no_rows(7), get_status(1, AGAIN))
    play.answers(status_is(RUNNING, 1), back=get_status(1, AGAIN))
    play.answers(status_is(FINISHED, 1), back=fetch(7, AGAIN))
    play.gets(reply("FetchResults", 7))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 10.0, OURS)]
    play.asks(fetch(8), fetch(8, AGAIN))


def test_a_fetch_whose_second_run_is_refused_shows_that_error(play: Play) -> None:
    finished(play).asks(fetch(7))
    play.answers(no_rows(7), back=execute("SELECT 1", 5))
    play.answers(refused(5, THEIRS), to_client=frame(encode_failure("FetchResults", 7, THEIRS, None, ERROR_CODE)))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED_TWICE, 10.0, OURS)]


@pytest.mark.parametrize(
    ("answer", "shown", "end"),
    [
        (
            status_is(ERROR, 1, THEIRS),
            frame(encode_failure("FetchResults", 7, THEIRS, None, ERROR_CODE)),
            OutcomeKind.FAILED_TWICE,
        ),
        (exception("GetOperationStatus", 1), no_rows(7), OutcomeKind.FAILED),
    ],
    ids=["fails too", "cannot be followed"],
)
def test_a_fetch_whose_second_run_does_not_end_well_shows_an_error(
    play: Play, answer: bytes, shown: bytes, end: OutcomeKind
) -> None:
    finished(play).asks(fetch(7))
    play.falls_back(no_rows(7), get_status(1, AGAIN))
    play.answers(answer, to_client=shown)
    assert play.outcomes == [Outcome(end, 10.0, OURS)]


@pytest.mark.parametrize("state", [CANCELED, OperationState.TIMEDOUT])
def test_a_fetch_whose_second_run_ends_without_an_error_shows_what_the_server_says_of_it(
    play: Play, state: OperationState
) -> None:
    finished(play).asks(fetch(7))
    play.falls_back(no_rows(7), get_status(1, AGAIN))
    play.answers(status_is(state, 1), back=fetch(7, AGAIN))
    play.gets(no_rows(7, THEIRS))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED_TWICE, 10.0, OURS)]


@pytest.mark.parametrize(
    "answer", [reply("FetchResults", 7), exception("FetchResults", 7)], ids=["rows", "exception"]
)
def test_rows_that_came_end_the_statement_and_are_never_fetched_twice(play: Play, answer: bytes) -> None:
    finished(play).passes(fetch(7), answer)
    assert (play.outcomes, play.is_known) == ([Outcome(OutcomeKind.FINISHED, 2.5)], False)
    play.passes(fetch(8), no_rows(8))


def test_a_log_that_cannot_be_fetched_says_nothing_of_the_statement(play: Play) -> None:
    finished(play).passes(fetch_log(7), no_rows(7))
    play.asks(fetch(8))
    play.answers(no_rows(8), back=execute("SELECT 1", 5))


def test_a_synchronous_statement_falls_back_at_its_first_fetch_too(play: Play) -> None:
    synchronous(play).gets(executed(5))
    play.asks(fetch(7))
    play.answers(no_rows(7), back=execute_and_wait("SELECT 1", 5))


def test_a_statement_that_is_closed_unfetched_has_finished(play: Play) -> None:
    finished(play).passes(operation_call("CloseOperation", 7), reply("CloseOperation", 7))
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


def test_a_large_first_batch_passes_as_it_comes() -> None:
    play = finished(play_over("whole"))
    play.asks(fetch(7))
    batch = frame(reply("FetchResults", 7)[4:] + bytes(2 * 1024 * 1024))
    play.gets(batch[:100_000])
    play.gets(batch[100_000:])
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


# --- failures that the client is told of


@pytest.mark.parametrize("state", [CANCELED, OperationState.TIMEDOUT, OperationState.CLOSED])
def test_a_statement_that_was_stopped_does_not_fall_back(play: Play, state: OperationState) -> None:
    in_background(play).gets(status_is(state, 6, OURS))
    assert play.kinds == [OutcomeKind.UNKNOWN]


def test_a_failure_that_comes_late_is_shown(play: Play) -> None:
    in_background(play).dialogue.now = 10.0 + FALLBACK_WITHIN_S + 1
    play.gets(status_is(ERROR, 6, OURS))
    assert play.kinds == [OutcomeKind.FAILED]


def test_however_late_it_comes_a_failure_that_says_that_the_text_was_out_of_date_is_not(play: Play) -> None:
    in_background(play, fall_back_on="our doing").dialogue.now = 10.0 + FALLBACK_WITHIN_S + 1
    play.falls_back(status_is(ERROR, 6, OURS), get_status(6, AGAIN))


@pytest.mark.parametrize(
    ("text", "may_fall_back"),
    [("SELECT 2", False), ("SELECT 1", True)],
    ids=["not allowed", "the client's own text"],
)
def test_only_another_text_that_may_be_falls_back(play: Play, text: str, may_fall_back: bool) -> None:  # noqa: FBT001
    play.executes(execute_and_wait("SELECT 1", 5), execute_and_wait(text, 5), text, may_fall_back=may_fall_back)
    play.gets(refused(5))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED, 2.5, OURS)]


@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "long"])
def test_a_failed_check_is_known_by_its_cause_alone_and_told_as_such(play: Play, padding: int) -> None:
    """However late it comes, and however far behind it stands."""
    synchronous(play, fall_back_on="the keys have changed").dialogue.now += 2 * FALLBACK_WITHIN_S
    play.answers(refused_for(5, "x" * padding + "the keys have changed"), back=execute_and_wait("SELECT 1", 5))
    play.gets(executed(5))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5 + 2 * FALLBACK_WITHIN_S, "the keys have changed")]


LIMITED = Refusal("it would read too much", "42ZSL")


def test_an_original_that_a_limit_refuses_is_not_run_after_a_failure(play: Play) -> None:
    play.executes(execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5), original_refusal=LIMITED)
    play.gets(refused(5))
    assert play.outcomes == [Outcome(OutcomeKind.FAILED, 2.5, OURS)]


@pytest.mark.parametrize("size", [1, KEPT_CALL_BYTES_MAX], ids=["kept", "too long to be kept"])
def test_an_original_that_a_limit_refuses_takes_the_place_of_no_answer(size: int) -> None:
    statement = f"SELECT '{'x' * size}'"
    play, premises = play_with(request_bytes_max=2 * KEPT_CALL_BYTES_MAX), Premises(lambda: False)
    call, sent = execute_and_wait(statement, 5), execute_and_wait("SELECT 2", 5)
    play.executes(call, sent, premises=premises, original_refusal=LIMITED)
    play.withholds(call, executed(5), own_close(OPERATION))
    assert play.kinds == [OutcomeKind.FAILED]


def test_a_failure_with_a_call_behind_it_is_shown(binary: Play) -> None:
    in_background(binary).asks(fetch(7))
    binary.gets(status_is(ERROR, 6, OURS))
    assert binary.outcomes == [Outcome(OutcomeKind.FAILED, 2.5, OURS)]


def test_a_failure_with_a_statement_held_behind_it_is_shown(binary: Play) -> None:
    synchronous(binary).says(execute("SELECT 3", 6))
    binary.gets(refused(5))
    assert binary.dialogue.relay.phase is Phase.HELD


def test_a_call_too_long_to_be_kept_goes_as_the_original() -> None:
    statement = f"SELECT '{'x' * KEPT_CALL_BYTES_MAX}'"
    play = play_with(request_bytes_max=2 * KEPT_CALL_BYTES_MAX)
    play.executes(execute_and_wait(statement, 5), execute_and_wait(statement, 5))
    play.gets(refused(5))


# --- every statement's end


def test_the_end_of_a_statement_that_went_as_the_original_is_told_too(play: Play) -> None:
    play.executes(execute("SELECT 1", 5), execute("SELECT 1", 5), "SELECT 1")
    play.gets(executed(5))
    play.passes(get_status(6), status_is(RUNNING, 6))
    assert play.outcomes == []
    play.passes(get_status(7), status_is(FINISHED, 7))
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


def test_a_synchronous_statement_has_finished_with_its_reply(play: Play) -> None:
    play.executes(execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 1", 5), "SELECT 1")
    play.gets(executed(5))
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


@pytest.mark.parametrize(
    "call",
    [operation_call("CancelOperation", 7), operation_call("CloseOperation", 7), close_session(7)],
    ids=["cancel", "close", "close session"],
)
def test_the_end_of_a_statement_that_is_stopped_early_is_unknown(play: Play, call: bytes) -> None:
    in_background(play).gets(status_is(RUNNING, 6))
    play.asks(call)
    assert play.outcomes == [Outcome(OutcomeKind.UNKNOWN, 2.5)]


def test_the_end_of_a_statement_whose_connection_ends_is_unknown(play: Play) -> None:
    in_background(play).leaves()
    assert play.outcomes == []
    play.tell([*play.dialogue.tracked_statements.sessions_ended([SESSION], 2.5)])
    assert play.kinds == [OutcomeKind.UNKNOWN]


def test_a_statement_that_the_server_runs_within_its_call_is_lost_with_the_connection(play: Play) -> None:
    synchronous(play).leaves()
    assert play.outcomes == [Outcome(OutcomeKind.LOST, 2.5)]


def test_a_statement_goes_as_the_original_where_too_many_rewritten_ones_are_open() -> None:
    play = play_with(tracked_statements=TrackedStatements(tracked_statements_max=2))
    in_background(play).gets(status_is(RUNNING, 6))
    play.executes(execute("SELECT 3", 7), execute("SELECT 3", 7), "SELECT 4")


def test_nothing_falls_back_where_there_are_too_many_aliases() -> None:
    for play in plays_with(LocalOperationAliases(0)):
        in_background(play).gets(status_is(ERROR, 6, OURS))


def test_a_second_run_for_which_there_is_no_room_any_more_is_closed() -> None:
    aliases, other = LocalOperationAliases(1), OperationId(b"another statement's")
    for play in plays_with(aliases):
        failed = failing(play)
        assert aliases.add(other, other, SESSION)
        failed.answers(executed(5, AGAIN), back=own_close(AGAIN))
        play.answers(reply("CloseOperation", 1), to_client=status_is(ERROR, 6, OURS))
        assert play.outcomes == [Outcome(OutcomeKind.FAILED, 2.5, OURS)]
        assert aliases.alias_closed(other) == other


def test_an_exception_in_place_of_a_reply_reaches_the_client(play: Play) -> None:
    in_background(play).gets(exception("GetOperationStatus", 6))
    assert play.outcomes == []


# --- more than one connection


def test_a_statement_falls_back_for_whichever_connection_asks_for_its_end(play: Play) -> None:
    in_background(play).gets(status_is(RUNNING, 6))
    other = play.second()
    other.asks(get_status(1))
    other.falls_back(status_is(ERROR, 1, OURS), get_status(1, AGAIN))
    other.gets(status_is(FINISHED, 1))
    assert play.kinds == [OutcomeKind.RECOVERED]
    play.asks(fetch(7), fetch(7, AGAIN))


def test_a_cancel_from_another_connection_reaches_the_fallback_that_is_on_its_way(play: Play) -> None:
    failing(play)
    # The first operation is still there, so the one who cancels is told that it is done.
    play.second().asks(operation_call("CancelOperation", 1))
    play.runs_again(operation_call("CancelOperation", 1, AGAIN))
    play.answers(reply("CancelOperation", 1), back=get_status(6, AGAIN))
    play.gets(status_is(CANCELED, 6))
    assert play.kinds == [OutcomeKind.UNKNOWN]


@pytest.mark.parametrize("close", [operation_call("CloseOperation", 1), close_session(1)])
def test_a_close_from_another_connection_leaves_no_operation_of_the_fallback_behind(
    play: Play, close: bytes
) -> None:
    failing(play)
    play.second().asks(close)
    play.answers(executed(5, AGAIN), back=own_close(AGAIN))
    # Whoever asks is told what the server says of an operation that is closed.
    play.answers(reply("CloseOperation", 1), back=get_status(6))
    play.gets(reply("GetOperationStatus", 6, status=3, message="Invalid OperationHandle"))
    play.asks(get_status(7))
    assert play.kinds == [OutcomeKind.UNKNOWN]


def test_others_are_told_that_a_statement_runs_while_it_falls_back(play: Play) -> None:
    other, late = in_background(play).second(), play.second()
    late.asks(get_status(3))
    play.answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    other.asks(get_status(2))
    other.answers(status_is(ERROR, 2, OURS), to_client=frame(encode_still_running(2)))
    play.answers(executed(5, AGAIN), back=own_close(OPERATION))
    late.answers(status_is(ERROR, 3, OURS), to_client=frame(encode_still_running(3)))
    assert play.outcomes == []


@pytest.mark.parametrize("transport", ["whole", "HTTP"])
def test_rows_of_the_first_run_too_long_to_be_kept_reach_nobody_once_there_is_a_second(transport: str) -> None:
    play, long = in_background(play_over(transport)), frame(bytes(WATCHED_REPLY_BYTES_MAX + 1))
    other = play.second()
    other.asks(fetch(3))
    play.falls_back(status_is(ERROR, 6, OURS), get_status(6, AGAIN))
    if transport == "HTTP":
        other.withholds(fetch(3), long)
        assert play.outcomes == []
    else:
        assert [type(command) for command in other.answers(long[:1000])] == [Close]


def test_rows_that_were_passing_as_their_statement_fell_back_are_not_the_end_of_the_second_run() -> None:
    play = running(play_over("whole"))
    other, long = play.second(), frame(bytes(WATCHED_REPLY_BYTES_MAX + 1))
    other.passes(fetch(3), long[:1000])
    play.asks(get_status(6))
    play.falls_back(status_is(ERROR, 6, OURS), get_status(6, AGAIN))
    other.gets(long[1000:])
    assert play.outcomes == []


def test_a_state_of_the_first_operation_is_not_the_end_of_the_second_run(play: Play) -> None:
    other = in_background(play).second()
    other.asks(get_status(3))
    play.falls_back(status_is(ERROR, 6, OURS), get_status(6, AGAIN))
    other.gets(status_is(OperationState.CLOSED, 3))
    assert play.outcomes == []


def test_an_exception_about_the_first_run_is_not_the_end_of_the_second(play: Play) -> None:
    other = in_background(play).second()
    other.asks(fetch(3))
    play.answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    other.withholds(fetch(3), exception("FetchResults", 3))
    play.runs_again(get_status(6, AGAIN))
    play.gets(status_is(ERROR, 6, THEIRS))
    assert play.kinds == [OutcomeKind.FAILED_TWICE]


def test_the_close_of_an_operation_nobody_knows_is_no_reply_to_a_query_of_ours(binary: Play) -> None:
    unchanged = [True]
    synchronous(binary, premises=Premises(lambda: unchanged[0]))
    unchanged[0] = False
    binary.asks(get_status(6, AGAIN))
    binary.withholds(execute_and_wait("SELECT 1", 5), executed(5), back=own_close(OPERATION))
    binary.gets(status_is(RUNNING, 6))
    binary.says(execute("SELECT 3", 7))
    ours = Call("ExecuteStatement", 1, execute("SELECT 4", 1)[4:], reply_bytes_max=1000)
    binary.dialogue.carry_out(binary.dialogue.relay.ask(ours))
    assert binary.answers(reply("CloseOperation", 1), back=execute("SELECT 4", 1)) == []
    assert binary.answers(executed(1, THIRD)) == [BackendReply(executed(1, THIRD)[4:])]


def test_a_client_that_leaves_during_a_fallback_leaves_no_operation_behind(binary: Play) -> None:
    failing(binary).leaves()
    # What is left of the client's own replies is nobody's any more.
    closing_calls = operation_call("CancelOperation", 1, AGAIN) + own_close(AGAIN)
    binary.answers(executed(5, AGAIN), back=closing_calls)
    assert binary.kinds == [OutcomeKind.UNKNOWN]


def test_a_client_that_leaves_while_the_original_runs_leaves_it_to_whoever_asks(binary: Play) -> None:
    other = finished(binary).second()
    binary.asks(fetch(7))
    binary.falls_back(no_rows(7), get_status(1, AGAIN))
    binary.leaves()
    assert binary.outcomes == []
    other.passes(get_status(2), status_is(FINISHED, 2), get_status(2, AGAIN))
    assert binary.kinds == [OutcomeKind.RECOVERED]


def test_replies_to_a_client_that_has_left_are_nobodys_though_ours_are_still_awaited() -> None:
    dialogue = Dialogue().open_session()
    dialogue.client(get_status(5) + execute("SELECT 1", 6))
    ours = Call("ExecuteStatement", 7, execute("SELECT 2", 7)[4:], reply_bytes_max=1000)
    dialogue.carry_out(dialogue.relay.ask(ours))
    dialogue.carry_out(dialogue.relay.close("the client closed"))
    dialogue.backend_got()
    dialogue.backend(status_is(RUNNING, 5) + executed(7, AGAIN))
    assert dialogue.client_got() == b""
    assert dialogue.backend_got() == operation_call("CancelOperation", 1, AGAIN) + own_close(AGAIN)


# --- a reply stream that is not what the calls explain


def test_a_kept_reply_that_cannot_be_read_reaches_the_client_whole(binary: Play) -> None:
    finished(binary).asks(fetch(7))
    garbage = reply("GetInfo", 7)
    (turned,) = binary.answers(garbage, to_client=garbage)
    assert isinstance(turned, TurnedTransparent)


@pytest.mark.parametrize(("begins", "ends"), [(in_background, []), (failing, [OutcomeKind.UNKNOWN])])
def test_a_reply_that_cannot_be_read_ends_the_connection_while_an_answer_is_to_be_judged(
    binary: Play, begins: Callable[[Play], Play], ends: list[OutcomeKind]
) -> None:
    assert any(isinstance(command, Close) for command in begins(binary).answers(reply("GetInfo", 6)))
    assert binary.kinds == ends


def test_half_a_kept_reply_reaches_the_client_when_the_connection_turns_transparent() -> None:
    play = finished(play_over("whole"))
    play.asks(fetch(7))
    play.asks(fetch(8))
    broken, half = reply("GetInfo", 7), reply("FetchResults", 8)[:20]
    (turned,) = play.answers(broken + half, to_client=broken + half)
    assert isinstance(turned, TurnedTransparent)
    play.gets(reply("FetchResults", 8)[20:])


# --- over HTTP alone


def test_an_unreadable_reply_over_http_reaches_nobody_where_it_may_be_an_overtaken_answer() -> None:
    play, unchanged = play_over("HTTP"), [True]
    running(play, premises=Premises(lambda: unchanged[0]))
    unchanged[0] = False
    play.is_refused(fetch(7), reply("FetchResults", 8))
    assert play.outcomes == []


def test_a_client_over_http_that_leaves_before_it_knows_of_an_operation_ends_its_statement() -> None:
    play = play_over("HTTP")
    play.executes(execute("SELECT 1", 5), execute("SELECT 2", 5))
    play.leaves()
    assert play.kinds == [OutcomeKind.UNKNOWN]


def test_a_client_over_http_that_leaves_during_a_second_run_leaves_the_first() -> None:
    play = in_background(play_over("HTTP"))
    beside = play.second()
    beside.asks(get_status(7))
    play.answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    play.leaves()
    assert (play.kinds, play.is_known) == ([OutcomeKind.UNKNOWN], False)
    beside.gets(status_is(ERROR, 7, OURS))


def test_a_statement_that_is_passed_on_over_http_is_told_of_before_it_goes() -> None:
    play, unreadable = play_over("HTTP"), execute("USE ?", 5).replace(b"?", b"\xff")
    assert [type(event) for event in play.says(unreadable, to_backend=unreadable)] == [StatementPassed]
