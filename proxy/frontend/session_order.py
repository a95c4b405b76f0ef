"""The order of a session's statements: a change of the session waits for its rewritten writes to end.

Spark analyses a statement in the background in a thread of its own, so that a later statement of the session may
overtake it. An overtaken statement that only reads falls back (`proxy.operations.fallback_policy`). One that
writes cannot be run twice: a statement that may change its session waits until the server says that it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call
from proxy.operations.session_port import SessionPort
from proxy.statements.statement_class import StatementClass
from proxy.upstream.query_driver import MakeCall
from proxy.wire.hs2.calls import GET_OPERATION_STATUS, UNFINISHED, OperationHandle, encode_operation_call
from proxy.wire.hs2.replies import decode_state_reply, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from rewriter.domains.literals import literal

# Clients wait for a write before they change its session. One that does not should get an error before it gives
# up.
WAIT_S: Final = 600.0
# Pause where the server cannot be asked yet. It holds back its own answers about running operations.
_PAUSE_S: Final = 0.05
_STILL_WRITING: Final = (
    "Starpruner held this statement back: an earlier statement of the session, which writes and was rewritten,"
    " still runs after {:g} s. Wait for its end, or SET starpruner.enabled=false before it."
)
_SEQID: Final = 1


async def until_writes_end(
    port: SessionPort, statement: StatementClass, make_call: MakeCall | None
) -> Dispatch | None:
    """Wait as long as the statement must not be released. Returns a dispatch that refuses it after WAIT_S.

    Without `make_call`, the proxy learns of ends only from the clients' own calls.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while writes := port.writes_before(statement):
        if loop.time() > deadline:
            return Dispatch(f"SELECT raise_error({literal('string', _STILL_WRITING.format(WAIT_S))})")
        await _look(writes, make_call)
    return None


async def _look(writes: Sequence[WriteUnderWay], make_call: MakeCall | None) -> None:
    """Ask the server whether a write has ended: its own client may never ask."""
    for write in writes:
        operation = write.operation
        if make_call is None or operation is None or await _is_running(operation, make_call):
            continue
        if write.operation is operation:
            # The write has not fallen back meanwhile.
            write.is_over = True
            return
    await asyncio.sleep(_PAUSE_S)


async def _is_running(operation: OperationHandle, make_call: MakeCall) -> bool:
    """True if the server says so, or its answer cannot be read. An operation unknown to the server has ended."""
    message = encode_operation_call(GET_OPERATION_STATUS, _SEQID, operation)
    raw = await make_call(Call(GET_OPERATION_STATUS, _SEQID, message, CONTROL_REPLY_BYTES_MAX))
    if raw is None:
        return True
    try:
        reply = decode_state_reply(open_reply(raw, expect_reply(raw, GET_OPERATION_STATUS, _SEQID)))
    except (RemoteProtocolError, IncompleteError):
        return True
    return reply.status.ok and reply.state in UNFINISHED
