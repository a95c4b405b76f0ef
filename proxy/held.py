"""A statement that waits for its ruling."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.commands import StatementPassed
from proxy.executions import RERUN_CALL_BYTES_MAX, Execution
from proxy.rulings import Ruling
from proxy.wire.hs2 import (
    EXECUTE_STATEMENT,
    StatementCall,
    decode_statement_call,
    replace_statement,
    words_of_statement,
)
from proxy.wire.messages import Message


@dataclass(frozen=True)
class Held:
    """The call as it came, and what it says."""

    message: Message
    call: StatementCall

    @property
    def statement(self) -> str:
        """Its text."""
        return self.call.statement or ""

    def with_text(self, text: str, message_bytes_max: int) -> Message:
        """The call with another statement, or as it came where that would be too long to be sent."""
        if text == self.call.statement:
            return self.message
        raw = replace_statement(self.message.raw, self.call.span, text)
        return Message(self.message.header, raw) if len(raw) <= message_bytes_max else self.message

    def execution(self, ruling: Ruling, sent: Message, now: float) -> Execution:
        """The record of the statement that goes to the backend now."""
        differs = sent is not self.message
        keeps = ruling.may_rerun and differs and len(self.message.raw) <= RERUN_CALL_BYTES_MAX
        own_call = self.message if keeps else None
        return Execution(ruling, self.call.session, now, self.call.run_async, own_call)


def hold(message: Message) -> Held | None:
    """The statement of a call that is to be ruled on first, or None where the call is of another kind."""
    if message.header.name != EXECUTE_STATEMENT:
        return None
    call = decode_statement_call(message)
    return None if call is None or call.statement is None else Held(message, call)


def passing(message: Message) -> list[StatementPassed]:
    """What is to be known of a statement before it goes on that nobody is asked about."""
    call = decode_statement_call(message)
    return [] if call is None else [StatementPassed(call.session, words_of_statement(message, call))]
