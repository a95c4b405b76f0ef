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

# Java's class, and not Spark's error class before it: some statements raise one that their client has chosen.
# Where a session has another form of messages (spark.sql.error.messageFormat), nothing is known.
_REFUSED: Final = re.compile(
    r"Error running query: (?:\[[\w.]+\] )?org\.apache\.spark\.sql\.catalyst\.parser\.ParseException: "
)
_QUOTED: Final = "\n== SQL ==\n"
# The line by which the parser points to the place, below the one that it is in.
_POINTER: Final = re.compile(r"-*\^\^\^")


# Text whose failures are told apart. A longer one takes milliseconds in which the whole process waits.
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
    if digest is None or _REFUSED.match(message) is None:
        return False
    _, is_quoted, quoted = message.partition(_QUOTED)
    return is_quoted != "" and _digest(quoted) == digest


def _digest(text: str) -> bytes:
    """The digest of a text, less pointers and blank ends."""
    lines = (line for line in text.strip().split("\n") if _POINTER.fullmatch(line) is None)
    return sha256("\n".join(lines).encode(errors="surrogatepass")).digest()
