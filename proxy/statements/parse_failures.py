"""Failures by which a server says that its parser has not read a statement: then no part of it has run.

A statement that fails later may have written a part of what it writes: files that tasks have committed, some of
several inserts, a table that a query was to fill, tables of a database before the one that could not be dropped.
Nothing in its message tells how far it came: an error of the analysis or of the metastore may as well come from a
step behind the first write. So such failures count as writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Final

# The pattern asks for Java's class, not for Spark's error class before it: a client can make some statements raise
# any of these. Nothing is known where a session has another form of messages (spark.sql.error.messageFormat).
_REFUSED: Final = re.compile(
    r"(?P<is_status>org\.apache\.hive\.service\.cli\.HiveSQLException: )?"
    r"Error running query: (?:\[[\w.]+\] )?org\.apache\.spark\.sql\.catalyst\.parser\.ParseException: "
)
_QUOTED: Final = "\n== SQL ==\n"
# The reply to ExecuteStatement has the message alone. An operation's status has a class before it, and behind it
# a stack trace, which begins here.
_TRACE: Final = "\n\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServerErrors$.runningQueryError("
# The line by which the parser points to the place, below the one that it is in.
_POINTER: Final = re.compile(r"-*\^\^\^")


# The longest text whose failures are told apart. A longer one takes milliseconds in which the whole process waits.
_CHARS_MAX: Final = 250_000


def parse_failure_of(text: str) -> Callable[[str], bool]:
    r"""A test of failure messages: true for one by which the parser refused this text, which is not kept.

    The parser quotes what it was given. If that is less than the text, a script has run up to there.

    >>> parser = "org.apache.spark.sql.catalyst.parser.ParseException"
    >>> message = f"Error running query: {parser}: \nNo.\n\n== SQL ==\nSELEC 1\n^^^\n"
    >>> parse_failure_of("SELEC 1")(message)
    True
    >>> parse_failure_of("BEGIN DELETE FROM t; EXECUTE IMMEDIATE 'SELEC 1'; END")(message)
    False
    """
    return partial(_is_told, _digest(text) if len(text) <= _CHARS_MAX else None)


def _is_told(digest: bytes | None, message: str) -> bool:
    refused = _REFUSED.match(message) if digest is not None else None
    # With one such line more, the refused text holds one itself, and may go on behind it.
    if refused is None or message.count(_TRACE) != (refused["is_status"] is not None):
        return False
    _, is_quoted, quoted = message.partition(_TRACE)[0].partition(_QUOTED)
    return is_quoted != "" and _digest(quoted) == digest


def _digest(text: str) -> bytes:
    """The digest of a text, less pointers and blank ends."""
    lines = (line for line in text.strip().split("\n") if _POINTER.fullmatch(line) is None)
    return sha256("\n".join(lines).encode(errors="surrogatepass")).digest()
