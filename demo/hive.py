"""PyHive connections, and answers that can be compared."""

import random
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyhive import hive

Row = tuple[Any, ...]

# Below the ports that systems choose for sockets bound to port 0: 32768 and up on Linux, 49152 elsewhere.
_PORTS = range(20_000, 30_000)
_PORTS_TRIED_MAX = 100

CONNECT_SECONDS_MAX = 2  # To a server on this machine; it either listens or it does not.


@dataclass(frozen=True)
class Endpoint:
    """The address on which a HiveServer2 listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Endpoint":
        """An endpoint from HOST:PORT."""
        host, separator, port = text.rpartition(":")
        if not (separator and host and port.isdecimal()):
            raise ValueError(f"expected HOST:PORT, got {text!r}")
        return cls(host, int(port))

    @property
    def jdbc_url(self) -> str:
        """The URL for hive-jdbc and beeline."""
        return f"jdbc:hive2://{self}/default"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def listens(self) -> bool:
        """Tells whether a process accepts connections here."""
        try:
            socket.create_connection((self.host, self.port), CONNECT_SECONDS_MAX).close()
        except OSError:
            return False
        return True


class Session(hive.Connection):  # type: ignore[misc] # PyHive has no types
    """A session that can be left at any moment: the server ends it once it sees that the connection is gone."""

    def close(self) -> None:
        """Ends the session, if there is a connection to do it on."""
        if self._transport.isOpen():
            super().close()


def connect(endpoint: Endpoint, *, database: str = "default", user: str = "demo") -> Session:
    """Opens a session of its own on a connection of its own."""
    return Session(host=endpoint.host, port=endpoint.port, database=database, username=user)


def run(connection: hive.Connection, sql: str) -> list[Row]:
    """Executes one statement and fetches all its rows (none for a statement without a result)."""
    cursor, transport = connection.cursor(), connection._transport  # noqa: SLF001 - PyHive does not offer it
    try:
        cursor.execute(sql)
        return fetch_all(cursor)
    except KeyboardInterrupt:
        # In the middle of a reply no other call can be sent, and the rest of the reply may be minutes away.
        transport.close()
        raise
    finally:
        if transport.isOpen():
            cursor.close()


def fetch_all(cursor: hive.Cursor) -> list[Row]:
    """All rows of an executed statement, none for one without a result."""
    if not cursor.description:
        return []
    try:
        rows: list[Row] = cursor.fetchall()
    except TypeError:
        # Spark 3 announces a column "Result" where there is no result, and then sends no column, on which PyHive
        # stumbles.
        if [column[0] for column in cursor.description] != ["Result"]:
            raise
        return []
    return rows


def same_answer(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Tells whether two results hold the same rows equally often, in any order."""
    return Counter(left) == Counter(right)


def free_port() -> int:
    """A port that nobody listens on now.

    Spark cannot be told to choose one and say which, so another process may take it before Spark does; Spark
    then fails to start, with a message in its log. No process gets one of these ports unless it asks for it.
    """
    for port in random.sample(_PORTS, _PORTS_TRIED_MAX):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"none of {_PORTS_TRIED_MAX} ports from {_PORTS.start} to {_PORTS.stop - 1} is free")
