"""Calls of TCLIService as drivers make them, and what was answered in a form that can be compared."""

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import thrift_sasl
from pyhive.hive import get_installed_sasl
from support.beeline_clients import comparable_message
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportBase

from demo.hive import Endpoint

# A statement of these tests takes a second or two; on a busy machine, many times that.
FINISH_SECONDS_MAX = 120
POLL_SECONDS = 0.1

_UNFINISHED = frozenset(
    {
        ttypes.TOperationState.INITIALIZED_STATE,
        ttypes.TOperationState.RUNNING_STATE,
        ttypes.TOperationState.PENDING_STATE,
    }
)
# They say when something happened.
_PER_RUN = frozenset({"operationStarted", "operationCompleted"})

# Errors name the handle that they are about.
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

# How many lines of a stack trace follow, and how many of them are new.
_DEPTH = re.compile(r":\d+:\d+$")

Struct = Any  # What Thrift generates has no types.
Opener = Callable[[Endpoint], TTransportBase]


def binary(endpoint: Endpoint) -> TTransportBase:
    """SASL PLAIN, as all drivers speak it unless they are told otherwise."""
    socket = TSocket(endpoint.host, endpoint.port)
    login = {"host": endpoint.host, "sasl_auth": "PLAIN", "username": "tester", "password": "secret"}
    return thrift_sasl.TSaslClientTransport(lambda: get_installed_sasl(**login), "PLAIN", socket)


class Dialogue:
    """One connection to a server, and all that was said on it."""

    def __init__(self, client: TCLIService.Client) -> None:
        self._client = client
        # Handles are random: one is told from another by when it was seen first.
        self._handles: dict[bytes, str] = {}
        self.answers: list[tuple[str, object]] = []

    def call(self, name: str, **fields: object) -> Struct:
        """Make a call, and note what came back."""
        reply = self._call(name, fields)
        self.answers.append((name, self._comparable(reply)))
        return reply

    def open_session(self, version: int, configuration: dict[str, str] | None = None) -> Struct:
        """The handle of a new session."""
        reply = self.call("OpenSession", client_protocol=version, configuration=configuration or {})
        return reply.sessionHandle

    def execute(self, session: Struct, sql: str, *, run_async: bool = True) -> Struct:
        """The handle of a statement that runs, or has run."""
        fields = {"sessionHandle": session, "statement": sql, "confOverlay": {}, "runAsync": run_async}
        return self.call("ExecuteStatement", **fields).operationHandle

    def finish(self, operation: Struct) -> Struct:
        """Ask for its status until it has ended. Only the last answer is noted: how many came before is chance."""
        deadline = time.monotonic() + FINISH_SECONDS_MAX
        while True:
            reply = self._call("GetOperationStatus", {"operationHandle": operation})
            if getattr(reply, "operationState", None) not in _UNFINISHED or time.monotonic() > deadline:
                self.answers.append(("GetOperationStatus", self._comparable(reply)))
                return reply
            time.sleep(POLL_SECONDS)

    def fetch(
        self, operation: Struct, rows: int = 10_000, orientation: int = ttypes.TFetchOrientation.FETCH_NEXT
    ) -> Struct:
        """One batch."""
        return self.call("FetchResults", operationHandle=operation, orientation=orientation, maxRows=rows)

    def read(self, operation: Struct) -> None:
        """Columns and rows of an operation that has a result, to its end, and close it."""
        self.call("GetResultSetMetadata", operationHandle=operation)
        while _row_count(self.fetch(operation)):
            pass
        self.close(operation)

    def close(self, operation: Struct) -> None:
        """Close an operation."""
        self.call("CloseOperation", operationHandle=operation)

    def _call(self, name: str, fields: dict[str, object]) -> Struct:
        request = getattr(ttypes, f"T{name}Req")(**fields)
        try:
            return getattr(self._client, name)(request)
        except TApplicationException as error:
            return error

    def _comparable(self, value: object) -> object:
        if isinstance(value, ttypes.THandleIdentifier):
            return self._handles.setdefault(value.guid + value.secret, f"handle {len(self._handles)}")
        if isinstance(value, list):
            return [self._comparable(item) for item in value]
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, float) and math.isnan(value):
            return "NaN"
        if hasattr(value, "__dict__"):
            members = {
                name: self._comparable(member) for name, member in vars(value).items() if name not in _PER_RUN
            }
            if isinstance(value, ttypes.TStatus):
                members["infoMessages"] = _causes(value)
            if isinstance(value, ttypes.TGetOperationStatusResp):
                # The server never says it; the proxy does, where it answers itself (test_hive_jdbc_versions).
                assert members.pop("hasResultSet") in {None, True, False}
            return type(value).__name__, members
        return value


@contextmanager
def dialogue(endpoint: Endpoint, opener: Opener = binary) -> Iterator[Dialogue]:
    """A dialogue on a connection of its own."""
    transport = opener(endpoint)
    transport.open()
    try:
        yield Dialogue(TCLIService.Client(TBinaryProtocol(transport)))
    finally:
        transport.close()


def _text(message: str | None) -> str | None:
    return None if message is None else _UUID.sub("UUID", comparable_message(message))


def _causes(status: Struct) -> list[str | None]:
    """The exceptions that an error came of, without their stack traces: those say which way a thread took."""
    causes = [line for line in status.infoMessages or () if line.startswith("*")]
    return [_text(_DEPTH.sub("", cause)) for cause in causes]


def _row_count(fetched: Struct) -> int:
    results = getattr(fetched, "results", None)
    if results is None:
        return 0
    if not results.columns:
        return len(results.rows)
    (column,) = (member for member in vars(results.columns[0]).values() if member is not None)
    return len(column.values)
