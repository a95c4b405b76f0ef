"""Checks of remembered keys on connections whose clients send calls behind one another."""

import pytest
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    THIRD,
    Dialogue,
    execute,
    executed,
    get_status,
    operation_call,
    reply,
    status_is,
)

from proxy.operations.dispatch import Dispatch, Outcome, Refusal
from proxy.operations.key_check import CheckVerdict, KeyCheck
from proxy.relay.commands import AwaitCheck, Close, Command, StatementHeld
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState
from proxy.wire.thrift.messages import FramedMessageReader


async def nothing_asked() -> CheckVerdict:
    return CheckVerdict.HELD


def names(data: bytes) -> list[tuple[str, int]]:
    reader = FramedMessageReader(1 << 20)
    reader.feed(data)
    found = []
    while (message := reader.next_message()) is not None:
        found.append((message.header.name, message.header.seqid))
    return found


def held_by_check(dialogue: Dialogue, *behind: bytes, refusal: Refusal | None = None) -> KeyCheck:
    check = KeyCheck(nothing_asked, 0.0, 5.0)
    commands = dialogue.client(execute("SELECT 1", 2))
    assert any(isinstance(command, StatementHeld) for command in commands)
    dispatch = Dispatch("SELECT 2", may_fall_back=True, check=check, original_refusal=refusal)
    dialogue.carry_out(dialogue.relay.release(dispatch))
    for call in behind:
        dialogue.client(call)
    return check


REPLIES = {
    "GetOperationStatus": lambda seqid: status_is(OperationState.RUNNING, seqid),
    "CancelOperation": lambda seqid: reply("CancelOperation", seqid),
    "CloseOperation": lambda seqid: reply("CloseOperation", seqid),
}


def play(dialogue: Dialogue, check: KeyCheck, verdict: CheckVerdict) -> list[tuple[str, int]]:
    """Answer what the backend is sent, and end the check only once there is nothing else to do."""
    operations, sent = iter((OPERATION, AGAIN, THIRD)), names(dialogue.backend_got())
    while sent:
        for name, seqid in sent:
            answer = executed(seqid, next(operations)) if name == "ExecuteStatement" else REPLIES[name](seqid)
            obey(dialogue, dialogue.backend(answer))
        sent = names(dialogue.backend_got())
        if not sent and check.verdict is None:
            assert not dialogue.client_got()
            check.settle(verdict)
            obey(dialogue, dialogue.carry_out(dialogue.relay.check_settled(check)))
            sent = names(dialogue.backend_got())
    return names(dialogue.client_got())


def obey(dialogue: Dialogue, commands: list[Command]) -> None:
    for command in commands:
        if isinstance(command, StatementHeld):
            obey(dialogue, dialogue.carry_out(dialogue.relay.release(Dispatch(command.statement))))


@pytest.mark.parametrize("verdict", list(CheckVerdict))
@pytest.mark.parametrize(
    "behind",
    [
        get_status(3, THIRD),
        # The reply to this one is not read.
        operation_call("CancelOperation", 3, THIRD),
        execute("SELECT 7", 3),
    ],
)
def test_a_call_that_is_sent_behind_is_answered_behind(behind: bytes, verdict: CheckVerdict) -> None:
    dialogue = Dialogue().open_session()
    check = held_by_check(dialogue, behind)
    answered = play(dialogue, check, verdict)
    assert [seqid for _, seqid in answered] == [2, 3]
    assert dialogue.relay.phase is Phase.OPEN


@pytest.mark.parametrize("verdict", list(CheckVerdict))
def test_a_call_that_is_sent_before_is_answered_before(verdict: CheckVerdict) -> None:
    dialogue = Dialogue().open_session()
    dialogue.client(get_status(1, THIRD))
    check = held_by_check(dialogue, get_status(3, THIRD))
    dialogue.backend(status_is(OperationState.RUNNING, 1))
    assert names(dialogue.client_got()) == [("GetOperationStatus", 1)]
    assert [name for name, _ in names(dialogue.backend_got())] == ["GetOperationStatus", "ExecuteStatement"]
    obey(dialogue, dialogue.backend(executed(2, OPERATION)))
    assert not dialogue.client_got()
    check.settle(verdict)
    obey(dialogue, dialogue.carry_out(dialogue.relay.check_settled(check)))
    assert [seqid for _, seqid in play(dialogue, check, verdict)][:2] == [2, 3]


@pytest.mark.parametrize("verdict", list(CheckVerdict))
def test_an_original_that_a_limit_refuses_is_not_run_where_no_check_was_answered(verdict: CheckVerdict) -> None:
    dialogue = Dialogue().open_session()
    check = held_by_check(dialogue, refusal=Refusal("it would read too much", "42ZSL"))
    dialogue.backend(executed(2, OPERATION))
    dialogue.backend_got()
    check.settle(verdict)
    commands = dialogue.carry_out(dialogue.relay.check_settled(check))
    is_run_again = "ExecuteStatement" in [name for name, _ in names(dialogue.backend_got())]
    is_decided_again = any(isinstance(command, StatementHeld) for command in commands)
    unconfirmed = set(CheckVerdict) - {CheckVerdict.HELD, CheckVerdict.UNANSWERED}
    assert (is_run_again, is_decided_again) == (False, verdict in unconfirmed)


def test_bytes_that_answer_no_call_end_the_connection_while_a_check_is_awaited() -> None:
    dialogue = Dialogue().open_session()
    _ = held_by_check(dialogue)
    dialogue.backend(executed(2, OPERATION))
    assert dialogue.relay.phase is Phase.WITHHOLDING
    commands = dialogue.backend(status_is(OperationState.RUNNING, 3))
    assert any(isinstance(command, Close) for command in commands)
    assert bytes(OPERATION) not in dialogue.client_got()


def test_the_end_of_a_statement_is_told_whose_client_leaves_while_its_check_is_awaited() -> None:
    dialogue = Dialogue().open_session()
    outcomes: list[Outcome] = []
    check = KeyCheck(nothing_asked, 0.0, 5.0)
    dialogue.client(execute("SELECT 1", 2))
    dispatch = Dispatch("SELECT 2", may_fall_back=True, check=check, on_outcome=outcomes.append)
    dialogue.carry_out(dialogue.relay.release(dispatch))
    commands: list[Command] = dialogue.backend(executed(2, OPERATION))
    assert any(isinstance(command, AwaitCheck) for command in commands)
    commands = dialogue.carry_out(dialogue.relay.close("the client has gone"))
    assert "StatementEnded" in [type(command).__name__ for command in commands]
