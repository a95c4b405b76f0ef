"""A statement that waits for its ruling."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.operations.dispatch import Dispatch
from proxy.operations.events import StatementPassed
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX, TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import (
    EXECUTE_STATEMENT,
    StatementCall,
    decode_statement_call,
    decode_statement_leniently,
    replace_statement,
)
from proxy.wire.thrift.messages import Message


@dataclass(frozen=True)
class HeldStatement:
    """The call as it came, and what it says."""

    message: Message
    call: StatementCall

    @property
    def statement(self) -> str:
        """Its text."""
        return self.call.statement or ""

    def sent(self, dispatch: Dispatch, message_bytes_max: int, tracked_statements: TrackedStatements) -> Message:
        """The call to make: with the ruling's text, or as it came.

        It goes as it came where the other text would be too long to be sent, and where the statement could not be
        run again although its ruling rests on that.
        """
        if dispatch.text == self.call.statement:
            return self.message
        is_kept = len(self.message.raw) <= KEPT_CALL_BYTES_MAX and tracked_statements.has_room_for_a_rewrite
        if dispatch.may_fall_back and not is_kept:
            return self.message
        raw = replace_statement(self.message.raw, self.call.span, dispatch.text)
        return Message(self.message.header, raw) if len(raw) <= message_bytes_max else self.message

    def tracked(self, dispatch: Dispatch, sent: Message, now: float) -> TrackedStatement:
        """The record of the statement that goes to the backend now."""
        may_fall_back = dispatch.may_fall_back and sent is not self.message
        original_call = self.message if may_fall_back else None
        return TrackedStatement(
            dispatch, self.call.session, now, self.call.run_async, original_call, is_unsettled=may_fall_back
        )


def hold(message: Message) -> HeldStatement | None:
    """The statement of a call that is to be ruled on first, or None where the call is of another kind."""
    if message.header.name != EXECUTE_STATEMENT:
        return None
    call = decode_statement_call(message)
    return None if call is None or call.statement is None else HeldStatement(message, call)


def statements_passed(message: Message) -> list[StatementPassed]:
    """What is to be known of a statement before it goes on that nobody is asked about."""
    call = decode_statement_call(message)
    return [] if call is None else [StatementPassed(call.session, decode_statement_leniently(message, call))]
