"""A rewritten statement whose session or tables change before its answer is there."""

from dataclasses import dataclass, field

import pytest
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    Dialogue,
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
from support.statement_play import FINISHED, OURS, RUNNING, THEIRS, Play, original_call, own_close, refused

from proxy.operations.dispatch import Outcome, OutcomeKind, Premises
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.reply_tracker import WATCHED_REPLY_BYTES_MAX
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import Close
from proxy.wire.hs2.calls import OperationState, encode_failure, encode_still_running
from proxy.wire.hs2.replies import decode_status_only, open_reply
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.reader import read_header

CHECK_FAILED = "the keys in this statement have changed"


@dataclass
class World:
    """Premises that a test sets."""

    is_session_unchanged: bool = True
    are_tables_unchanged: bool = True
    premises: Premises = field(init=False)

    def __post_init__(self) -> None:
        self.premises = Premises(lambda: self.is_session_unchanged, lambda: self.are_tables_unchanged)

    def change(self, what: str) -> None:
        setattr(self, what, False)


CHANGES = ["is_session_unchanged", "are_tables_unchanged"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=[None, 1], ids=["whole", "bytes"])
def play(request: pytest.FixtureRequest) -> Play:
    return Play(Dialogue(chunk_bytes=request.param).open_session())


def in_background(play: Play, world: World, fall_back_on: str = "") -> Play:
    sent = execute("SELECT 1", 5), execute("SELECT 2", 5)
    play.executes(*sent, premises=world.premises, fall_back_on=fall_back_on)
    play.answers(executed(5), to_client=executed(5))
    return play


def fall_back(play: Play, call: bytes, shown: bytes) -> None:
    """The reply `shown` to `call` reaches nobody, and the statement has another operation."""
    play.says(call, to_backend=call)
    play.answers(shown, back=execute("SELECT 1", 5))
    play.answers(executed(5, AGAIN), back=own_close(OPERATION))


def rows(seqid: int) -> bytes:
    return reply("FetchResults", seqid)


def asks_for_columns(seqid: int, operation: bytes = OPERATION) -> bytes:
    return operation_call("GetResultSetMetadata", seqid, operation)  # type: ignore[arg-type]


def is_refused(raw: bytes) -> bool:
    """Whether the client is told that the answer was dropped."""
    status = decode_status_only(open_reply(raw[4:], read_header(raw[4:])))
    return status.sql_state == "40001" and "changed" in (status.message or "")


def client_is_refused(play: Play, answer: bytes, back: bytes = b"") -> None:
    commands = play.tell(play.dialogue.backend(answer))
    assert commands == []
    assert is_refused(play.dialogue.client_got())
    assert play.dialogue.backend_got() == back


# --- which reply shows it


@pytest.mark.parametrize("change", CHANGES)
def test_an_overtaken_answer_is_replaced_by_that_of_a_second_run(play: Play, world: World, change: str) -> None:
    in_background(play, world).passes(get_status(6), status_is(RUNNING, 6))
    world.change(change)
    fall_back(play, get_status(7), status_is(FINISHED, 7))
    play.answers(reply("CloseOperation", 1), back=get_status(7, AGAIN))
    play.answers(status_is(RUNNING, 7), to_client=status_is(RUNNING, 7))
    play.says(get_status(8), to_backend=get_status(8, AGAIN))
    play.answers(status_is(FINISHED, 8), to_client=status_is(FINISHED, 8))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]
    play.says(fetch(9), to_backend=fetch(9, AGAIN))
    play.answers(rows(9), to_client=rows(9))


@pytest.mark.parametrize("change", CHANGES)
def test_an_overtaken_synchronous_statement_falls_back_and_its_operation_closed(
    play: Play, world: World, change: str
) -> None:
    sent = execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5)
    play.executes(*sent, premises=world.premises)
    world.change(change)
    play.answers(executed(5), back=own_close(OPERATION) + execute_and_wait("SELECT 1", 5))
    play.answers(reply("CloseOperation", 1) + executed(5, AGAIN), to_client=executed(5, AGAIN))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]
    play.passes(fetch(6, AGAIN), rows(6))


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_are_asked_for_without_a_look_at_the_status_are_judged_too(
    play: Play, world: World, change: str
) -> None:
    in_background(play, world)
    world.change(change)
    fall_back(play, fetch(6), rows(6))
    play.answers(reply("CloseOperation", 1), back=original_call(get_status, AGAIN))
    play.answers(status_is(FINISHED, 1), back=fetch(6, AGAIN))
    play.answers(rows(6), to_client=rows(6))
    assert play.outcomes == [Outcome(OutcomeKind.OVERTAKEN, 2.5)]


def test_columns_are_not_asked_for_before_the_second_run_has_finished(play: Play, world: World) -> None:
    """Spark would make some up, and say the same for ever."""
    in_background(play, world)
    world.change("is_session_unchanged")
    fall_back(play, asks_for_columns(6), metadata_is("k", "int", 6))
    play.answers(reply("CloseOperation", 1), back=original_call(get_status, AGAIN))
    play.answers(status_is(RUNNING, 1), back=original_call(get_status, AGAIN))
    play.answers(status_is(FINISHED, 1), back=asks_for_columns(6, AGAIN))
    play.answers(metadata_is("j", "int", 6), to_client=metadata_is("j", "int", 6))


# --- which changes count


def test_a_change_after_the_finished_status_does_not_matter(play: Play, world: World) -> None:
    in_background(play, world).passes(get_status(6), status_is(FINISHED, 6))
    for change in CHANGES:
        world.change(change)
    play.passes(asks_for_columns(7), metadata_is("k", "int", 7))
    play.passes(fetch(8), rows(8))
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


def test_a_session_that_changes_after_the_columns_were_told_does_not_matter(play: Play, world: World) -> None:
    in_background(play, world).passes(asks_for_columns(6), metadata_is("k", "int", 6))
    world.change("is_session_unchanged")
    play.passes(get_status(7), status_is(FINISHED, 7))


def test_columns_that_spark_makes_up_tell_nothing(play: Play, world: World) -> None:
    in_background(play, world).passes(asks_for_columns(6), metadata_is("Result", "string", 6))
    world.change("is_session_unchanged")
    fall_back(play, get_status(7), status_is(FINISHED, 7))


def test_columns_of_a_kind_that_is_not_read_tell_nothing(play: Play, world: World) -> None:
    in_background(play, world).passes(asks_for_columns(6), metadata_is("k", "unheard of", 6))
    world.change("is_session_unchanged")
    fall_back(play, get_status(7), status_is(FINISHED, 7))


def test_columns_that_are_refused_tell_nothing(play: Play, world: World) -> None:
    refusal = reply("GetResultSetMetadata", 6, status=3, message="not yet")
    in_background(play, world).passes(asks_for_columns(6), refusal)
    world.change("is_session_unchanged")
    fall_back(play, get_status(7), status_is(FINISHED, 7))


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


def test_tables_that_change_after_the_columns_were_told_do_matter(play: Play, world: World) -> None:
    in_background(play, world).passes(asks_for_columns(6), metadata_is("k", "int", 6))
    world.change("are_tables_unchanged")
    fall_back(play, get_status(7), status_is(FINISHED, 7))


def test_rows_that_are_asked_for_too_early_are_refused_and_nothing_else(play: Play, world: World) -> None:
    in_background(play, world)
    early = reply("FetchResults", 6, status=3, message="Expected state FINISHED, but found RUNNING")
    play.passes(fetch(6), early)
    assert play.outcomes == []
    play.passes(get_status(7), status_is(FINISHED, 7))


def test_a_statement_that_only_went_as_the_original_is_never_dropped(play: Play, world: World) -> None:
    play.executes(execute("SELECT 1", 5), execute("SELECT 1", 5), "SELECT 1", premises=world.premises)
    play.answers(executed(5), to_client=executed(5))
    for change in CHANGES:
        world.change(change)
    play.passes(get_status(6), status_is(FINISHED, 6))
    play.passes(fetch(7), rows(7))


# --- failures in a session that has changed


def test_a_failure_in_a_session_that_has_changed_is_answered_by_a_second_run(play: Play, world: World) -> None:
    """Without us, the statement may have been analysed after the change as well."""
    in_background(play, world, fall_back_on=CHECK_FAILED)
    world.change("is_session_unchanged")
    fall_back(play, get_status(6), status_is(OperationState.ERROR, 6, CHECK_FAILED))
    play.answers(reply("CloseOperation", 1), back=get_status(6, AGAIN))
    play.answers(status_is(FINISHED, 6), to_client=status_is(FINISHED, 6))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5, CHECK_FAILED)]


def with_columns_told(play: Play, world: World) -> Play:
    """The client knows the columns of an answer that another statement's session would not give."""
    in_background(play, world, fall_back_on=CHECK_FAILED)
    play.passes(asks_for_columns(6), metadata_is("k", "int", 6))
    world.change("is_session_unchanged")
    return play


def test_a_failed_check_is_never_shown_as_it_is(play: Play, world: World) -> None:
    with_columns_told(play, world).says(get_status(7), to_backend=get_status(7))
    client_is_refused(play, status_is(OperationState.ERROR, 7, CHECK_FAILED))


def test_the_users_own_error_is_shown_where_the_statement_cannot_fall_back(play: Play, world: World) -> None:
    failure = status_is(OperationState.ERROR, 7, THEIRS)
    with_columns_told(play, world).passes(get_status(7), failure)


# --- an answer that is dropped and cannot be replaced


def test_an_overtaken_answer_is_refused_for_good_where_the_session_means_something_else(
    play: Play, world: World
) -> None:
    with_columns_told(play, world)
    world.change("are_tables_unchanged")
    play.says(get_status(7), to_backend=get_status(7))
    client_is_refused(play, status_is(FINISHED, 7))
    assert [outcome.kind for outcome in play.outcomes] == [OutcomeKind.FAILED]
    for call, answer in (
        (get_status(8), status_is(FINISHED, 8)),
        (fetch(8), rows(8)),
        (fetch(8), reply("FetchResults", 8, status=3, message=OURS)),
        (asks_for_columns(8), metadata_is("k", "int", 8)),
    ):
        play.says(call, to_backend=call)
        client_is_refused(play, answer)
    close = operation_call("CloseOperation", 9)
    play.says(close, to_backend=close)


def test_it_is_refused_where_there_are_too_many_aliases(world: World) -> None:
    tracked_statements = TrackedStatements(aliases=LocalOperationAliases(0))
    play = in_background(Play(Dialogue(tracked_statements=tracked_statements).open_session()), world)
    world.change("is_session_unchanged")
    play.says(get_status(6), to_backend=get_status(6))
    client_is_refused(play, status_is(FINISHED, 6))


def test_it_is_refused_where_the_client_has_called_on(play: Play, world: World) -> None:
    in_background(play, world)
    world.change("is_session_unchanged")
    play.says(get_status(6), to_backend=get_status(6))
    play.says(fetch(7), to_backend=fetch(7))
    client_is_refused(play, status_is(FINISHED, 6))
    client_is_refused(play, rows(7))


def test_a_synchronous_answer_that_is_refused_leaves_no_operation(play: Play, world: World) -> None:
    sent = execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5)
    play.executes(*sent, premises=world.premises)
    world.change("is_session_unchanged")
    play.says(get_status(6, AGAIN), to_backend=get_status(6, AGAIN))
    client_is_refused(play, executed(5), back=own_close(OPERATION))
    assert [outcome.kind for outcome in play.outcomes] == [OutcomeKind.FAILED]


def test_it_is_refused_after_the_second_run_was_refused(play: Play, world: World) -> None:
    in_background(play, world)
    world.change("is_session_unchanged")
    play.says(get_status(6), to_backend=get_status(6))
    play.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    client_is_refused(play, refused(5, THEIRS))
    assert [outcome.kind for outcome in play.outcomes] == [OutcomeKind.FAILED]
    play.says(fetch(7), to_backend=fetch(7))
    client_is_refused(play, rows(7))


def test_it_is_refused_after_the_client_cancelled(play: Play, world: World) -> None:
    """A statement that has finished is not cancelled any more: its rows are there."""
    in_background(play, world)
    world.change("are_tables_unchanged")
    cancel = operation_call("CancelOperation", 6)
    play.passes(cancel, reply("CancelOperation", 6))
    play.says(fetch(7), to_backend=fetch(7))
    client_is_refused(play, rows(7))


def test_a_cancelled_statement_is_judged_until_it_is_closed(play: Play, world: World) -> None:
    """The cancel may come too late, although a status beside it says that the statement runs."""
    in_background(play, world)
    cancel = operation_call("CancelOperation", 6)
    play.passes(cancel, reply("CancelOperation", 6))
    play.passes(get_status(7), status_is(RUNNING, 7))
    world.change("are_tables_unchanged")
    play.says(fetch(8), to_backend=fetch(8))
    client_is_refused(play, rows(8))
    assert [outcome.kind for outcome in play.outcomes] == [OutcomeKind.UNKNOWN]


def test_rows_too_long_to_be_kept_end_the_connection(world: World) -> None:
    play = in_background(Play(Dialogue().open_session()), world)
    world.change("are_tables_unchanged")
    play.says(fetch(6), to_backend=fetch(6))
    long = frame(bytes(WATCHED_REPLY_BYTES_MAX + 1))
    commands = play.answers(long[:1000])
    assert [type(command) for command in commands] == [Close]


def test_rows_too_long_to_be_kept_pass_where_nothing_has_changed(world: World) -> None:
    play = in_background(Play(Dialogue().open_session()), world)
    play.says(fetch(6), to_backend=fetch(6))
    long = frame(bytes(WATCHED_REPLY_BYTES_MAX + 1))
    play.answers(long, to_client=long)
    assert play.outcomes == [Outcome(OutcomeKind.FINISHED, 2.5)]


# --- more than one connection


def test_what_another_connection_asks_of_the_first_run_meanwhile_is_not_answered_by_it(
    play: Play, world: World
) -> None:
    in_background(play, world)
    other = Play(Dialogue(tracked_statements=play.dialogue.tracked_statements).log_in())
    for call in (get_status(6), fetch(7), asks_for_columns(8)):
        other.says(call, to_backend=call)
    world.change("is_session_unchanged")
    fall_back(play, get_status(6), status_is(FINISHED, 6))
    other.answers(status_is(FINISHED, 6), to_client=frame(encode_still_running(6)))
    not_yet = "Expected state FINISHED, but found RUNNING"
    other.answers(rows(7), to_client=frame(encode_failure("FetchResults", 7, not_yet)))
    not_known = frame(encode_failure("GetResultSetMetadata", 8, not_yet))
    other.answers(metadata_is("k", "int", 8), to_client=not_known)


def test_what_another_connection_asks_during_the_fallback_is_not_its_end(play: Play, world: World) -> None:
    in_background(play, world)
    other = Play(Dialogue(tracked_statements=play.dialogue.tracked_statements).log_in())
    other.says(get_status(6), to_backend=get_status(6))
    world.change("is_session_unchanged")
    play.says(get_status(6), to_backend=get_status(6))
    play.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    other.answers(status_is(FINISHED, 6), to_client=frame(encode_still_running(6)))
    play.answers(executed(5, AGAIN), back=own_close(OPERATION))
    play.answers(reply("CloseOperation", 1), back=get_status(6, AGAIN))
    play.answers(status_is(FINISHED, 6), to_client=status_is(FINISHED, 6))
    assert [outcome.kind for outcome in play.outcomes] == [OutcomeKind.OVERTAKEN]


def test_what_is_dropped_stays_so_when_the_connection_that_runs_it_again_ends(play: Play, world: World) -> None:
    in_background(play, world)
    other = Play(Dialogue(tracked_statements=play.dialogue.tracked_statements).log_in())
    world.change("is_session_unchanged")
    play.says(get_status(6), to_backend=get_status(6))
    play.answers(status_is(FINISHED, 6), back=execute("SELECT 1", 5))
    play.tell(play.dialogue.carry_out(play.dialogue.relay.close("the client has gone")))
    other.says(fetch(7), to_backend=fetch(7))
    client_is_refused(other, rows(7))


def test_our_own_failure_in_a_session_that_has_changed_is_not_shown_either(play: Play, world: World) -> None:
    sent = execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5)
    play.executes(*sent, premises=world.premises)
    world.change("is_session_unchanged")
    play.answers(refused(5, OURS), back=execute_and_wait("SELECT 1", 5))
    play.answers(executed(5), to_client=executed(5))
    assert play.outcomes == [Outcome(OutcomeKind.RECOVERED, 2.5, OURS)]
