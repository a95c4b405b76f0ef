"""One statement on its way by itself: its states, and how it ends. Then the statements of a process."""

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from support.relay_dialogue import AGAIN, OPERATION, SESSION, THIRD, execute, get_status, operation_call

from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind, Premises, WriteUnderWay
from proxy.operations.fallback_policy import refusal
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import OperationHandle, SessionHandle
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header

SENT_AT, WITHIN_S = 10.0, 5.0
CHECK_FAILED = "the keys have changed"


class World:
    """What the statement rests on."""

    is_session_unchanged = True
    are_tables_unchanged = True


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def tracked(world: World) -> TrackedStatement:
    """A rewritten statement that runs in the background."""
    return of(world)


def of(world: World, *, run_async: bool = True) -> TrackedStatement:
    raw = execute("SELECT 1", 5)[4:]
    premises = Premises(lambda: world.is_session_unchanged, lambda: world.are_tables_unchanged)
    dispatch = Dispatch("SELECT 2", True, CHECK_FAILED, premises)  # noqa: FBT003 - whether it may fall back
    original_call = Message(read_header(raw), raw)
    return TrackedStatement(dispatch, SESSION, SENT_AT, run_async, original_call, is_rewritten=True)


CALL = Message(read_header(execute("SELECT 1", 5)[4:]), execute("SELECT 1", 5)[4:])


def fallen_back(tracked: TrackedStatement, failure: str | None = "it failed") -> TrackedStatement:
    _ = tracked.fall_back(12.0, failure)
    tracked.sent_again(AGAIN)
    return tracked


def may_fall_back(tracked: TrackedStatement) -> bool:
    """Whether it may, for a change, which is never too late."""
    return tracked.may_fall_back(None, 12.0, WITHIN_S)


@pytest.mark.parametrize(("at", "falls_back"), [(SENT_AT + WITHIN_S, True), (SENT_AT + WITHIN_S + 0.1, False)])
def test_a_failure_is_kept_from_the_client_for_so_long(
    tracked: TrackedStatement, at: float, *, falls_back: bool
) -> None:
    assert tracked.may_fall_back("it failed", at, WITHIN_S) is falls_back
    assert tracked.may_fall_back(f"because {CHECK_FAILED}", at, WITHIN_S)
    assert tracked.may_fall_back(None, at, WITHIN_S)


def test_a_failure_that_the_original_has_too_is_left_to_the_client(tracked: TrackedStatement) -> None:
    tracked.dispatch = replace(tracked.dispatch, is_own_fault=lambda message: "zero" in message)
    assert not tracked.may_fall_back("division by zero", 12.0, WITHIN_S)
    assert tracked.may_fall_back("no such column", 12.0, WITHIN_S)
    assert may_fall_back(tracked)


@pytest.fixture
def merge(world: World) -> TrackedStatement:
    """A rewritten statement that writes, and fails by its own check for keys that were not asked for."""
    tracked = of(world)
    is_other = partial(operator.ne, CHECK_FAILED)
    tracked.dispatch = replace(tracked.dispatch, is_own_fault=is_other, write=WriteUnderWay(OPERATION))
    return tracked


def test_a_write_falls_back_after_the_failure_of_its_own_check_alone(
    merge: TrackedStatement, world: World
) -> None:
    assert not merge.may_fall_back("a conflict", 12.0, WITHIN_S)
    # However late.
    assert merge.may_fall_back(CHECK_FAILED, 10_000.0, WITHIN_S)
    world.is_session_unchanged = False
    assert not merge.may_fall_back(CHECK_FAILED, 12.0, WITHIN_S)


def test_a_success_of_a_write_is_never_taken_back(merge: TrackedStatement, world: World) -> None:
    world.is_session_unchanged = world.are_tables_unchanged = False
    assert not merge.is_overtaken()
    world.is_session_unchanged = world.are_tables_unchanged = True
    assert not may_fall_back(merge)
    _ = merge.finished(12.0)
    assert not merge.may_fall_back(CHECK_FAILED, 12.0, WITHIN_S)


def test_changes_of_the_session_wait_for_the_second_run_of_a_write(merge: TrackedStatement) -> None:
    write = merge.dispatch.write
    assert write is not None
    _ = merge.fall_back(12.0, CHECK_FAILED)
    # Nobody asks about the first operation, which has ended.
    assert (write.operation, write.is_over) == (None, False)
    merge.sent_again(AGAIN)
    assert write.operation is AGAIN


def test_once_the_session_may_have_been_changed_a_write_is_not_run_again(merge: TrackedStatement) -> None:
    assert merge.dispatch.write is not None
    merge.dispatch.write.is_over = True
    assert not merge.may_fall_back(CHECK_FAILED, 12.0, WITHIN_S)


@pytest.mark.parametrize(
    ("kind", "is_withheld"),
    [(OutcomeKind.UNKNOWN, True), (OutcomeKind.FAILED, True), (OutcomeKind.FAILED_TWICE, False)],
)
def test_the_first_failure_of_a_write_is_no_answer_once_its_original_may_have_run(
    merge: TrackedStatement, kind: OutcomeKind, *, is_withheld: bool
) -> None:
    _ = merge.fall_back(12.0, CHECK_FAILED)
    _ = merge.fallback_ended(kind)
    assert merge.is_withheld is is_withheld


def test_nobody_is_told_to_run_a_write_again_once_its_original_may_have_run(merge: TrackedStatement) -> None:
    header = read_header(get_status()[4:])
    assert b"Run it again" in refusal(header, merge)
    _ = merge.fall_back(12.0, CHECK_FAILED)
    assert b"does not know how that ended" in refusal(header, merge)
    merge.sent_again(AGAIN)
    assert b"does not know how that ended" in refusal(header, merge)


def test_a_second_run_is_neither_repeated_nor_out_of_date_whatever_it_says(tracked: TrackedStatement) -> None:
    fallen_back(tracked)
    assert not may_fall_back(tracked)
    assert not tracked.may_fall_back(CHECK_FAILED, 12.0, WITHIN_S)
    assert not tracked.is_out_of_date(CHECK_FAILED)


def test_a_statement_is_repeated_while_the_client_knows_nothing_of_its_answer(
    tracked: TrackedStatement, world: World
) -> None:
    world.is_session_unchanged = False
    assert may_fall_back(tracked)
    tracked.columns_shown()
    assert not may_fall_back(tracked)
    world.is_session_unchanged = True
    assert may_fall_back(tracked)


def test_a_statement_that_has_finished_is_repeated_in_the_same_session_alone(
    tracked: TrackedStatement, world: World
) -> None:
    assert tracked.finished(11.0) == []
    assert may_fall_back(tracked)
    world.is_session_unchanged = False
    assert not may_fall_back(tracked)


def test_an_answer_is_overtaken_until_the_client_knows_of_it(tracked: TrackedStatement, world: World) -> None:
    assert not tracked.is_overtaken()
    world.are_tables_unchanged = False
    assert tracked.is_overtaken()
    tracked.finished(11.0)
    assert not tracked.is_overtaken()


def test_what_is_withheld_stays_so_until_a_second_run(tracked: TrackedStatement, world: World) -> None:
    [told] = tracked.answer_withheld(11.0)
    assert told.outcome == Outcome(OutcomeKind.FAILED, 1.0)
    assert tracked.is_overtaken()
    assert tracked.answer_withheld(12.0) == tracked.failed(12.0, "") == tracked.rows_came(12.0) == []
    assert tracked.is_overtaken()
    assert tracked.is_judged
    again = of(world)
    _ = again.fall_back(11.0, None)
    assert again.is_overtaken()
    again.sent_again(AGAIN)
    assert not again.is_overtaken()


@pytest.mark.parametrize("has_fallen_back", [False, True])
def test_nothing_is_judged_any_more_once_rows_are_there(
    tracked: TrackedStatement, *, has_fallen_back: bool
) -> None:
    if has_fallen_back:
        fallen_back(tracked)
        assert tracked.ends_with_rows
    else:
        tracked.finished(11.0)
    [told] = tracked.rows_came(20.0)
    recovered = Outcome(OutcomeKind.RECOVERED, 2.0, "it failed", fallback_s=8.0)
    assert told.outcome == (recovered if has_fallen_back else Outcome(OutcomeKind.FINISHED, 1.0))
    assert not tracked.is_judged
    assert not tracked.ends_with_rows
    assert tracked.rows_came(21.0) == tracked.stopped(21.0) == tracked.failed(21.0, "") == []


def test_rows_without_a_look_at_the_status_end_it_too(tracked: TrackedStatement) -> None:
    assert not tracked.ends_with_rows
    assert [told.outcome for told in tracked.rows_came(13.0)] == [Outcome(OutcomeKind.FINISHED, 3.0)]
    assert not tracked.is_judged


def test_a_failure_that_the_client_is_told_is_the_end(tracked: TrackedStatement) -> None:
    assert [told.outcome for told in tracked.failed(11.0, "it failed")] == [
        Outcome(OutcomeKind.FAILED, 1.0, "it failed")
    ]
    assert not tracked.is_judged


def test_it_took_as_long_as_until_its_end_was_first_seen(tracked: TrackedStatement) -> None:
    tracked.finished(11.0)
    tracked.finished(19.0)
    assert [told.outcome for told in tracked.stopped(20.0)] == [Outcome(OutcomeKind.FINISHED, 1.0)]


@pytest.mark.parametrize(
    ("run_async", "operation", "end"),
    [
        (True, None, OutcomeKind.UNKNOWN),
        (True, OPERATION, OutcomeKind.UNKNOWN),
        (False, None, OutcomeKind.LOST),
        (False, OPERATION, OutcomeKind.UNKNOWN),
    ],
)
def test_a_statement_is_lost_where_the_server_runs_it_within_a_call_that_has_ended(
    world: World, operation: OperationHandle | None, end: OutcomeKind, *, run_async: bool
) -> None:
    tracked = of(world, run_async=run_async)
    tracked.operation = operation
    assert [told.outcome.kind for told in tracked.stopped(11.0)] == [end]
    assert tracked.is_stopped


def test_a_failed_first_run_that_had_finished_counts_as_such_no_longer(tracked: TrackedStatement) -> None:
    tracked.finished(11.0)
    fallen_back(tracked)
    assert [told.outcome for told in tracked.stopped(20.0)] == [
        Outcome(OutcomeKind.UNKNOWN, 2.0, "it failed", fallback_s=8.0)
    ]


def test_an_overtaken_run_has_no_message(tracked: TrackedStatement) -> None:
    assert [told.outcome for told in fallen_back(tracked, None).finished(20.0)] == [
        Outcome(OutcomeKind.OVERTAKEN, 2.0, fallback_s=8.0)
    ]


def test_a_failure_that_could_not_be_repeated_is_told_as_the_first(tracked: TrackedStatement) -> None:
    _ = tracked.fall_back(12.0, f"{'x' * 3_000} {CHECK_FAILED}")
    [told] = tracked.fallback_ended(OutcomeKind.FAILED)
    assert told.outcome == Outcome(OutcomeKind.FAILED, 2.0, CHECK_FAILED)


def test_a_second_run_is_asked_about_as_soon_as_it_has_an_operation(tracked: TrackedStatement) -> None:
    _ = tracked.fall_back(12.0, "it failed")
    assert tracked.is_judged
    tracked.sent_again(AGAIN)
    assert tracked.operation == AGAIN
    assert not tracked.is_judged


# --- the statements of a process


def settled(world: World) -> TrackedStatement:
    """One that went as the original."""
    tracked = of(world)
    return TrackedStatement(tracked.dispatch, SESSION, SENT_AT, run_async=True, original_call=None)


def withheld(world: World) -> TrackedStatement:
    tracked = of(world)
    _ = tracked.answer_withheld(11.0)
    return tracked


def statement_of(tracked_statements: TrackedStatements, operation: OperationHandle) -> TrackedStatement | None:
    """The one that a call for the operation's status is about."""
    raw = get_status(6, operation)[4:]
    return tracked_statements.resolve(Message(read_header(raw), raw))[1]


def test_what_must_not_be_let_out_without_a_look_is_never_given_up(world: World) -> None:
    tracked_statements = TrackedStatements(tracked_statements_max=2)
    kept, given_up, last = withheld(world), settled(world), of(world)
    assert tracked_statements.operation_opened(kept, OPERATION, 11.0) == []
    assert tracked_statements.operation_opened(given_up, AGAIN, 11.0) == []
    [told] = tracked_statements.operation_opened(last, THIRD, 12.0)
    assert (told.dispatch, told.outcome.kind) == (given_up.dispatch, OutcomeKind.UNKNOWN)
    assert [statement_of(tracked_statements, handle) for handle in (OPERATION, AGAIN, THIRD)] == [kept, None, last]


def test_statements_that_are_not_rewritten_leave_room_for_one_that_is(world: World) -> None:
    tracked_statements = TrackedStatements(tracked_statements_max=4)
    for operation in (OPERATION, AGAIN, THIRD):
        tracked_statements.operation_opened(settled(world), operation, 11.0)
    assert tracked_statements.has_room_for_a_rewrite(CALL)
    assert not tracked_statements.has_unsettled


@pytest.mark.parametrize("make", [of, withheld])
def test_half_of_the_records_may_be_of_statements_that_are_never_given_up(
    world: World, make: Callable[[World], TrackedStatement]
) -> None:
    tracked_statements = TrackedStatements(tracked_statements_max=4)
    tracked_statements.operation_opened(make(world), OPERATION, 11.0)
    assert tracked_statements.has_unsettled
    assert tracked_statements.has_room_for_a_rewrite(CALL)
    tracked_statements.operation_opened(make(world), AGAIN, 11.0)
    assert not tracked_statements.has_room_for_a_rewrite(CALL)


def test_what_is_withheld_is_known_until_it_is_closed(world: World) -> None:
    tracked_statements, tracked = TrackedStatements(), withheld(world)
    tracked_statements.operation_opened(tracked, OPERATION, 11.0)
    tracked_statements.statement_ended(tracked)
    assert statement_of(tracked_statements, OPERATION) is tracked
    raw = operation_call("CloseOperation", 7)[4:]
    tracked_statements.operation_closed(Message(read_header(raw), raw))
    assert statement_of(tracked_statements, OPERATION) is None


def test_a_sessions_statements_end_with_it_and_those_of_others_do_not(world: World) -> None:
    tracked_statements, tracked = TrackedStatements(), of(world)
    tracked_statements.operation_opened(tracked, OPERATION, 11.0)
    assert tracked_statements.sessions_ended([SessionHandle(b"another")], 12.0) == []
    assert statement_of(tracked_statements, OPERATION) is tracked
    assert [told.outcome.kind for told in tracked_statements.sessions_ended([SESSION], 12.0)] == [
        OutcomeKind.UNKNOWN
    ]
    assert tracked.is_closed
    assert tracked.is_stopped
    assert statement_of(tracked_statements, OPERATION) is None


def test_a_new_operation_is_the_alias_of_the_old_one_until_its_session_ends(world: World) -> None:
    tracked_statements, tracked = TrackedStatements(), of(world)
    tracked_statements.operation_opened(tracked, OPERATION, 11.0)
    _ = tracked.fall_back(12.0, "it failed")
    assert tracked_statements.sent_again(tracked, AGAIN)
    assert statement_of(tracked_statements, OPERATION) is tracked
    assert statement_of(tracked_statements, AGAIN) is tracked
    raw = get_status(6)[4:]
    tracked_statements.sessions_ended([SESSION], 13.0)
    assert tracked_statements.resolve(Message(read_header(raw), raw))[0].raw == raw


def test_a_close_by_the_old_operation_ends_the_record_of_the_new_one(world: World) -> None:
    tracked_statements, tracked = TrackedStatements(), of(world)
    tracked_statements.operation_opened(tracked, OPERATION, 11.0)
    _ = tracked.fall_back(12.0, "it failed")
    assert tracked_statements.sent_again(tracked, AGAIN)
    raw = operation_call("CloseOperation", 7)[4:]
    tracked_statements.operation_closed(Message(read_header(raw), raw))
    assert tracked.is_closed
    assert statement_of(tracked_statements, OPERATION) is None
    assert statement_of(tracked_statements, AGAIN) is None


def test_the_log_is_told_the_id_of_each_operation_and_none_of_a_handle_of_another_form(world: World) -> None:
    told: list[str] = []
    tracked = of(world)
    tracked.dispatch = replace(tracked.dispatch, on_operation=told.append)
    public, secret = bytes(range(16)), bytes(16)
    tracked.operation_shown(OperationHandle(usual_handle(public, secret)))
    tracked.operation_shown(OPERATION)
    assert told == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]


def usual_handle(public: bytes, secret: bytes) -> bytes:
    """The handle as Spark encodes it: both halves of its identifier, its kind and whether it has rows."""
    halves = b"\x0b\0\x01\0\0\0\x10" + public + b"\x0b\0\x02\0\0\0\x10" + secret + b"\0"
    return b"\x0c\0\x01" + halves + b"\x08\0\x02\0\0\0\0\x02\0\x03\x01\0"
