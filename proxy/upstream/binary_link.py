"""The proxy's own logged-in connection to a backend over the binary protocol: one call and its reply at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NoReturn

from proxy.config.address import Address
from proxy.config.endpoints import Transport
from proxy.kerberos.errors import KerberosError
from proxy.net.login_threads import step_within_s
from proxy.net.protected_transport import protected_streams
from proxy.net.reply_room import NoReplyRoomError
from proxy.operations.internal_call import Call, Reply
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError, LoginError, OwnLimitError, OwnLoginError
from proxy.upstream.sasl_login import log_in
from proxy.wire.framing import FRAMED, UNFRAMED
from proxy.wire.reply_stream import Forward, FramedReplyStream, Handling, PendingCall, ReplyEnd, SyncLost
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.unframed_reply_stream import UnframedReplyStream

_READ_BYTES: Final = 64 * 1024


class BinaryLink:
    """One socket, logged in if the backend asks for it. It opens no session: handles work from any connection."""

    def __init__(self, address: Address, dialer: Dialer, reply_timeout_s: float) -> None:
        self._address = address
        self._dialer = dialer
        self._reply_s = reply_timeout_s
        self._asks_for_a_login = dialer.upstream.transport is not Transport.NOSASL
        self._framing = FRAMED if self._asks_for_a_login else UNFRAMED
        # The proxy and clients over HTTP read replies without frames.
        self._replies = FramedReplyStream(strips_headers=True) if self._asks_for_a_login else UnframedReplyStream()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._socket_writer: asyncio.StreamWriter

    async def open(self, credentials: bytes, login_owner: str) -> None:
        """Connect, and log in with this PLAIN response if the backend asks for a login.

        Where it asks for Kerberos, the proxy logs in as itself, or by the tickets that come with `credentials`:
        the caller has checked whose these are.
        Raises BackendError; `login_owner` names the user of a refused login in its sentence.
        """
        await self._dial()
        try:
            await self._log_in(credentials, login_owner)
        except BaseException:
            self.close()
            raise

    async def ask(self, call: Call) -> Reply:
        """Send a call and wait for its reply. Raises BackendError."""
        self._writer.write(self._framing.to_wire(call.message))
        self._replies.expect(PendingCall(Handling.OURS, call.name, call.seqid, call.reply_bytes_max))
        try:
            async with asyncio.timeout(self._reply_s):
                while True:
                    for event in self._replies.feed(await self._read_some(f"while {call.name} was under way")):
                        if isinstance(event, SyncLost):
                            self.not_hiveserver2(event.reason)
                        if isinstance(event, ReplyEnd):
                            return event.raw
        except TimeoutError:
            raise BackendError(
                f"the backend {self._address} did not answer {call.name} within {self._reply_s:g} s"
            ) from None

    @property
    def is_closed(self) -> bool:
        """True if the backend or the proxy has closed the connection."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def send(self, name: str, seqid: int, message: bytes) -> None:
        """Send a call whose reply is then read with `next_chunk`. Raises BackendError."""
        self._replies.expect(PendingCall(Handling.RELAY, name, seqid))
        self._writer.write(self._framing.to_wire(message))
        try:
            with self._mapped_wrapping():
                await self._writer.drain()
        except OSError:
            self._raise_closed("while a call was sent")

    @property
    def awaits_reply(self) -> bool:
        """True if the reply to the call sent last has not been read to its end."""
        return self._replies.pending_count > 0

    async def next_chunk(self) -> bytes:
        """Wait for the next bytes of that reply and return them; empty at its end. Raises BackendError."""
        while True:
            events = self._replies.feed(await self._read_some("before the end of its reply"))
            for event in events:
                if isinstance(event, SyncLost):
                    self.not_hiveserver2(event.reason)
            piece = b"".join(event.data for event in events if isinstance(event, Forward))
            if piece or not self.awaits_reply:
                return piece

    def close(self) -> None:
        """Close the socket."""
        self._writer.close()

    @property
    def _spoken(self) -> str:
        if self._dialer.upstream.kerberos is not None:
            return "SASL GSSAPI"
        return "SASL PLAIN" if self._asks_for_a_login else "TCP without SASL"

    def not_hiveserver2(self, what: str) -> NoReturn:
        """Raise the BackendError for a peer that speaks something else."""
        raise BackendError(
            f"the backend {self._address} does not speak HiveServer2's binary protocol over {self._spoken}: {what}"
        )

    async def _dial(self) -> None:
        try:
            self._reader, self._writer = await self._dialer.open_streams(self._address)
        except UnreachableError as error:
            raise BackendError(f"cannot reach the backend {self._address}: {error}") from error

    async def _log_in(self, credentials: bytes, login_owner: str) -> None:
        try:
            async with asyncio.timeout(self._reply_s):
                layer = await log_in(
                    self._dialer.upstream,
                    *(self._address, credentials),
                    partial(self._read_some, "during the login"),
                    *(self._writer.write, step_within_s(self._reply_s)),
                )
        except TimeoutError:
            self.not_hiveserver2(f"no answer to the login within {self._reply_s:g} s")
        except RemoteProtocolError as error:
            self.not_hiveserver2(str(error))
        except KerberosError as error:
            raise OwnLoginError(f"the backend {self._address}: {error}") from None
        except LoginError as error:
            raise LoginError(f"the backend {self._address} refused the login of {login_owner}: {error}") from None
        if layer is not None:
            # asyncio closes the socket of a writer that nobody holds.
            self._socket_writer = self._writer
            self._reader, self._writer = protected_streams(self._writer, layer, self._dialer.room)

    async def _read_some(self, when: str) -> bytes:
        with self._mapped_wrapping():
            try:
                received = await self._reader.read(_READ_BYTES)
            except OSError:
                received = b""
        if not received:
            self._raise_closed(when)
        return received

    @contextmanager
    def _mapped_wrapping(self) -> Iterator[None]:
        """Map errors of the layer that frames are wrapped in."""
        try:
            yield
        except NoReplyRoomError as error:
            raise OwnLimitError(f"the backend {self._address} was left: {error}") from None
        except KerberosError as error:
            raise BackendError(f"a call to the backend {self._address} failed: {error}") from None
        except RemoteProtocolError as error:
            self.not_hiveserver2(str(error))

    def _raise_closed(self, when: str) -> NoReturn:
        raise BackendError(f"the backend {self._address} closed the connection {when}")
