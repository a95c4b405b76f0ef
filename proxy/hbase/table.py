"""One table of HBase, by way of its Thrift gateway."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final, Protocol

from proxy.hbase import calls
from proxy.hbase.calls import Cell, GatewayCall, Row
from proxy.hbase.errors import HBaseError, TableExistsError
from proxy.wire.thrift.messages import Message

# The one family of columns: its name is stored with each cell.
FAMILY: Final = b"l"
# Rows in one call. A thousand of 100 bytes take the gateway some hundredths of a second, and no call is long.
PAGE_ROWS: Final = 1_000


class GatewayLink(Protocol):
    """A connection to the gateway (proxy/hbase/connection.py)."""

    def answer(self, call: GatewayCall, within_s: float) -> Message:
        """The reply to a call. Raises HBaseError."""

    def close(self) -> None:
        """End the connection."""

    def cut_off(self) -> None:
        """Let the call under way in another thread fail, and all that follow."""


class HBaseTable:
    """The rows of a table. Raises HBaseError.

    Each call has `call_s`, all pages of one scan or write have `pages_s`, and all calls inside `within` what that
    gives them.
    """

    def __init__(
        self,
        connection: GatewayLink,
        name: str,
        call_s: float,
        *,
        pages_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The clock is one that is never set."""
        self._connection = connection
        self._name = name
        self._call_s = call_s
        self._pages_s = pages_s
        self._clock = clock
        self._until = math.inf
        # Calls that were answered so far.
        self.answered_count = 0

    def create(self, ttl_s: int) -> None:
        """Make the table, if there is none. Cells live for `ttl_s` at most."""
        with suppress(TableExistsError):
            calls.read_nothing(self._answer(calls.create_table(self._name, FAMILY + b":", ttl_s)))

    def rows(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """The rows of these keys that exist, by key."""
        found = calls.read_rows(self._answer(calls.get_rows(self._name, keys)))
        return {row.key: row for row in found}

    def put(self, cells: Iterator[Cell], ttl_s: float) -> None:
        """Write cells, page by page."""
        until = self._clock() + self._pages_s
        while page := list(islice(cells, PAGE_ROWS)):
            self._check_time("a write", until)
            calls.read_nothing(self._answer(calls.put_cells(self._name, page, ttl_s)))

    def delete(self, keys: Sequence[bytes], column: bytes) -> None:
        """Delete a column of rows, page by page."""
        until = self._clock() + self._pages_s
        for start in range(0, len(keys), PAGE_ROWS):
            self._check_time("a deletion", until)
            page = keys[start : start + PAGE_ROWS]
            calls.read_nothing(self._answer(calls.delete_rows(self._name, page, column)))

    def scan(
        self, start: bytes, stop: bytes, *, filter_text: bytes = calls.KEYS_ONLY, page_rows: int = PAGE_ROWS
    ) -> Generator[Row]:
        """The rows from `start` up to `stop`, which is not one of them, in the order of the bytes of their keys.

        By default without values: the keys of these rows say it all. Raises HBaseError if the gateway gives other
        rows, or rows without an end.
        """
        until, last = self._clock() + self._pages_s, b""
        scanner = calls.read_number(self._answer(calls.open_scan(self._name, start, stop, page_rows, filter_text)))
        try:
            while page := calls.read_rows(self._answer(calls.next_rows(scanner, page_rows))):
                self._check_time("a scan", until)
                for row in page:
                    if not (start <= row.key < stop and last < row.key):
                        raise HBaseError("a scan was answered by rows that are not its own, or not in order")
                    last = row.key
                    yield row
        finally:
            # If this fails, the gateway ends the scan some time later.
            with suppress(HBaseError):
                calls.read_nothing(self._answer(calls.close_scan(scanner)))

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """Give all calls inside so many seconds together."""
        self._until = self._clock() + seconds
        try:
            yield
        finally:
            self._until = math.inf

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def cut_off(self) -> None:
        """Let the call under way fail, and all that follow. Any thread may call it."""
        self._connection.cut_off()

    def _check_time(self, what: str, until: float) -> None:
        if self._clock() > until:
            raise HBaseError(f"{what} has not ended within {self._pages_s:g} s")

    def _answer(self, call: GatewayCall) -> Message:
        reply = self._connection.answer(call, min(self._call_s, self._until - self._clock()))
        self.answered_count += 1
        return reply
