"""A client for thousands of sessions in one process."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from demo.hive import Endpoint
from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.calls import OperationHandle, SessionHandle
from proxy.wire.hs2.replies import decode_operation_reply, decode_session_reply, open_reply
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import HEADER, frame
from proxy.wire.thrift.reader import Reader, read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# On a busy machine; only what hangs takes as long.
PATIENCE_S = 60.0
OPENED_AT_ONCE = 50
_COMPLETE = encode_sasl(SaslStatus.COMPLETE)
# CLI_DBMS_NAME.
_INFO_TYPE = 17


@dataclass
class AsyncClient:
    """A connection that has logged in, and its session if it has opened one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: SessionHandle | None = None

    @classmethod
    async def log_in(cls, endpoint: Endpoint) -> Self:
        """Connect and log in."""
        client = cls(*await asyncio.open_connection(endpoint.host, endpoint.port))
        client.writer.write(plain_start("soak", "soak"))
        async with asyncio.timeout(PATIENCE_S):
            answer = await client.reader.readexactly(len(_COMPLETE))
            if answer != _COMPLETE:
                answer += await client.reader.read()
                await client.leave()
                raise ConnectionError(f"the login was answered with {answer!r}")
        return client

    @classmethod
    async def with_session(cls, endpoint: Endpoint) -> Self:
        """Connect, log in and open a session."""
        client = await cls.log_in(endpoint)
        client.session = decode_session_reply(
            await client.ask(hs2_calls.encode_open_session(1, "soak", "soak", {}))
        ).session
        return client

    @classmethod
    async def crowd(cls, endpoint: Endpoint, count: int) -> list[Self]:
        """So many, each with a session."""
        clients: list[Self] = []
        while len(clients) < count:
            opening = min(OPENED_AT_ONCE, count - len(clients))
            clients += await asyncio.gather(*(cls.with_session(endpoint) for _ in range(opening)))
        return clients

    async def get_info(self) -> None:
        """The cheapest call."""
        call = Writer().header("GetInfo", MessageType.CALL, 1).struct(1).raw(1, Kind.STRUCT, self._session)
        _ = await self.ask(call.i32(2, _INFO_TYPE).stop().stop().to_bytes())

    async def execute(self, sql: str) -> OperationHandle:
        """Begin a statement."""
        reply = decode_operation_reply(await self.ask(hs2_calls.encode_execute(1, self._session, sql, 0)))
        if reply.operation is None:
            raise ConnectionError(f"not executed: {reply.status.message}")
        return reply.operation

    async def of_operation(self, name: str, operation: OperationHandle) -> None:
        """Ask for its status, cancel or close it."""
        _ = await self.ask(hs2_calls.encode_operation_call(name, 1, operation))

    async def fetch(self, operation: OperationHandle) -> None:
        """The next batch."""
        _ = await self.ask(hs2_calls.encode_fetch(1, operation, 10_000))

    async def close_session(self) -> None:
        """End the session."""
        _ = await self.ask(hs2_calls.encode_close_session(1, self._session))

    def send(self, call: bytes) -> None:
        """Send a call and wait for nothing."""
        self.writer.write(frame(call))

    async def ask(self, call: bytes) -> Reader:
        """Send a call and read its reply."""
        self.send(call)
        async with asyncio.timeout(PATIENCE_S):
            header = await self.reader.readexactly(HEADER.size)
            raw = await self.reader.readexactly(HEADER.unpack(header)[0])
        return open_reply(raw, read_header(raw))

    async def leave(self) -> None:
        """Close the connection, whatever is under way."""
        self.writer.close()
        await self._gone()

    async def vanish(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()
        await self._gone()

    async def _gone(self) -> None:
        with suppress(OSError):
            await self.writer.wait_closed()

    @property
    def _session(self) -> SessionHandle:
        if self.session is None:
            raise ConnectionError("this connection has no session")
        return self.session
