"""A statement that is held until its dispatch is decided."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proxy.operations.dispatch import Dispatch, Refusal
from proxy.operations.events import StatementPassed
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX, TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import (
    EXECUTE_STATEMENT,
    StatementCall,
    decode_statement_call,
    decode_statement_leniently,
    encode_failure,
    replace_statement,
)
from proxy.wire.thrift.messages import Message


@dataclass(frozen=True)
class HeldStatement:
    """The client's call, and its contents."""

    message: Message
    call: StatementCall

    @property
    def statement(self) -> str:
        """The original text."""
        return self.call.statement or ""

    def refused(self, refusal: Refusal) -> bytes:
        """The reply to the call that fails it. No operation is opened."""
        header = self.message.header
        return encode_failure(header.name, header.seqid, refusal.message, refusal.sql_state)

    def checked(self, dispatch: Dispatch, message_bytes_max: int) -> Dispatch:
        """The dispatch. It is refused if its text is too long for a call and a limit refuses the original."""
        if dispatch.original_refusal is None or len(self._with_text_of(dispatch)) <= message_bytes_max:
            return dispatch
        return dispatch.refused_as_original()

    def dispatched(
        self, dispatch: Dispatch, message_bytes_max: int, tracked_statements: TrackedStatements, now: float
    ) -> tuple[Message, TrackedStatement]:
        """The call to make, with the text of the dispatch or the original, and the record of the statement.

        The original is sent if the other text is too long, or if its dispatch needs a fallback that cannot be.
        """
        is_kept = (
            dispatch.text != self.call.statement
            and len(self.message.raw) <= KEPT_CALL_BYTES_MAX
            and tracked_statements.has_room_for_a_rewrite(self.message)
        )
        sent = self._call_to_make(dispatch, message_bytes_max, is_kept=is_kept)
        is_original = sent is self.message
        is_rewritten = dispatch.may_fall_back and not is_original
        instead = is_original and dispatch.text != self.call.statement
        # The record has no text: it is kept until the statement's end, which may be hours away.
        return sent, TrackedStatement(
            replace(dispatch, text=""),
            self.call.session,
            now,
            self.call.run_async,
            self.message if is_rewritten and is_kept else None,
            original_instead=instead,
            is_rewritten=is_rewritten,
        )

    def _call_to_make(self, dispatch: Dispatch, message_bytes_max: int, *, is_kept: bool) -> Message:
        if dispatch.text == self.call.statement:
            return self.message
        if dispatch.may_fall_back and dispatch.original_refusal is None and not is_kept:
            return self.message
        raw = self._with_text_of(dispatch)
        return Message(self.message.header, raw) if len(raw) <= message_bytes_max else self.message

    def _with_text_of(self, dispatch: Dispatch) -> bytes:
        return replace_statement(self.message.raw, self.call.span, dispatch.text)


def hold(message: Message) -> HeldStatement | None:
    """The statement of a call whose dispatch is to be decided first, or None where the call is of another kind."""
    if message.header.name != EXECUTE_STATEMENT:
        return None
    call = decode_statement_call(message)
    return None if call is None or call.statement is None else HeldStatement(message, call)


def statements_passed(message: Message) -> list[StatementPassed]:
    """The event for a statement that nobody decides about, to be reported before it goes on."""
    call = decode_statement_call(message)
    return [] if call is None else [StatementPassed(call.session, decode_statement_leniently(message, call))]
