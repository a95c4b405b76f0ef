"""A connection of the proxy's own to the backend, logged in: calls and their replies, one at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, NoReturn

from proxy.address import Address, why_unreachable
from proxy.operation import Call, Reply
from proxy.wire.errors import RemoteProtocolError
from proxy.wire.frames import HEADER_BYTES, frame, frame_length
from proxy.wire.sasl import SaslReader, SaslStatus

_READ_BYTES: Final = 64 * 1024


class BackendError(Exception):
    """The backend could not be reached, refused us, or is not a HiveServer2. The message is a sentence."""


class BackendLink:
    """One socket and its login. A session is not opened: a handle works from any connection."""

    def __init__(self, address: Address, connect_timeout_s: float, reply_timeout_s: float) -> None:
        self._address = address
        self._connect_s = connect_timeout_s
        self._reply_s = reply_timeout_s
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, login: bytes, whose: str) -> None:
        """Connect, and log in with these SASL messages. Raises BackendError, which says whose login is refused."""
        await self._dial()
        try:
            await self._log_in(login, whose)
        except BaseException:
            self.hang_up()
            raise

    async def ask(self, call: Call) -> Reply:
        """Send a call and wait for its reply. Raises BackendError."""
        self._writer.write(frame(call.message))
        try:
            async with asyncio.timeout(self._reply_s):
                length = frame_length(await self._reader.readexactly(HEADER_BYTES))
                if length > call.reply_bytes_max:
                    await self._drop(length)
                    return None
                return await self._reader.readexactly(length)
        except TimeoutError:
            raise BackendError(
                f"the backend {self._address} did not answer {call.name} within {self._reply_s:g} s"
            ) from None
        except (asyncio.IncompleteReadError, OSError):
            self._closed(f"while {call.name} was under way")
        except RemoteProtocolError as error:
            self.not_hiveserver2(str(error))

    async def leave(self, last_words: bytes) -> None:
        """Say these frames, and wait until the backend has read them: a socket closed at once loses them."""
        self._writer.write(last_words)
        self._writer.write_eof()
        with suppress(OSError):
            while await self._reader.read(_READ_BYTES):
                pass

    def hang_up(self) -> None:
        """Close the socket."""
        self._writer.close()

    def not_hiveserver2(self, what: str) -> NoReturn:
        """Raise the BackendError for a peer that speaks something else."""
        raise BackendError(
            f"the backend {self._address} does not speak HiveServer2's binary protocol over SASL PLAIN: {what}"
        )

    async def _dial(self) -> None:
        try:
            async with asyncio.timeout(self._connect_s):
                self._reader, self._writer = await asyncio.open_connection(self._address.host, self._address.port)
        except TimeoutError:
            raise BackendError(
                f"cannot reach the backend {self._address}: no connection within {self._connect_s:g} s"
            ) from None
        except OSError as error:
            raise BackendError(f"cannot reach the backend {self._address}: {why_unreachable(error)}") from error

    async def _log_in(self, login: bytes, whose: str) -> None:
        self._writer.write(login)
        sasl = SaslReader()
        try:
            async with asyncio.timeout(self._reply_s):
                while (message := sasl.next_message()) is None:
                    sasl.feed(await self._read_some())
        except TimeoutError:
            self.not_hiveserver2(f"no answer to the login within {self._reply_s:g} s")
        except RemoteProtocolError as error:
            self.not_hiveserver2(str(error))
        if message.status is not SaslStatus.COMPLETE:
            words = message.body.decode("utf-8", "replace") or "no reason given"
            raise BackendError(f"the backend {self._address} refused the login of {whose}: {words}")

    async def _drop(self, count: int) -> None:
        """Read past a reply that is too long to keep."""
        while count:
            count -= len(await self._reader.readexactly(min(count, _READ_BYTES)))

    async def _read_some(self) -> bytes:
        try:
            received = await self._reader.read(_READ_BYTES)
        except OSError:
            received = b""
        return received or self._closed("during the login")

    def _closed(self, when: str) -> NoReturn:
        raise BackendError(f"the backend {self._address} closed the connection {when}")
