"""Names whose values are secrets, and texts that hold a secret.

Words are looked for by `in`, which is ten times as fast as a pattern of them, and linear whatever the text.
"""

from __future__ import annotations

import re
from typing import Final

# Parts of names, as Hadoop, JDBC, Kafka and the clouds have them, without separators; and Spark's functions that
# take a key.
_PARTS: Final = tuple(
    """
    secret passw passphrase passcode pwd token credential authorization jaas connectionstring accesskey apikey
    accountkey privatekey encryptionkey masterkey sharedkey signingkey aesencrypt aesdecrypt
    """.split()
)
# Words that hold such a part by chance; and endings of names that are facts about a secret, or count tokens of a
# text.
_OTHERS: Final = re.compile("secretar|tokeni[sz]")
_FACTS: Final = ("_count", "_type", "_length", "_size", "_at", "_date", "_time", "_ttl", "tokens")
_SEPARATORS: Final = str.maketrans("", "", "._-`")
# Characters of a name, or of its end, that are looked at.
NAME_CHARS_MAX: Final = 100

_MARKS: Final = ("bearer ", "?sig=", "&sig=", "signature=")
# A value is assigned here. Plans have a number behind a name.
_ASSIGNED: Final = re.compile("[:=]")
_NO_NAME: Final = re.compile(r"[^\w.#`-]+")
_CLOSING: Final = " \t\r\n\"'\\`])"


def mentions_secret(text: str) -> bool:
    """True if a part of a secret name is anywhere in a text of lower case."""
    folded = text.translate(_SEPARATORS)
    return "pass" in folded or any(part in folded for part in _PARTS)


def is_secret_name(name: str) -> bool:
    """True if a value of this name is a secret.

    >>> is_secret_name("fs.s3a.secret.key"), is_secret_name("db_pass"), is_secret_name("token_count")
    (True, True, False)
    """
    if len(name) > NAME_CHARS_MAX:
        return False
    lower = name.lower().rstrip("`")
    return mentions_secret(lower) and not lower.endswith(_FACTS) and _names_secret(lower)


def holds_secret(text: str) -> bool:
    """True if a literal, a comment or a message may hold a secret: a URL with a password, or SQL of its own.

    >>> holds_secret("s3a://key:abc@bucket/"), holds_secret("jdbc:mysql://h:3306/d?password=abc")
    (True, True)
    """
    lower = text.lower()
    scheme, _, user = lower.rpartition("@")[0].partition("://")
    if ":" in user or ("jdbc:oracle:" in scheme and "/" in scheme) or any(mark in lower for mark in _MARKS):
        return True
    if not mentions_secret(lower):
        return False
    return any(quote in text for quote in "'\"`") or any(map(_ends_in_name, _ASSIGNED.split(lower)[:-1]))


def _names_secret(lower: str) -> bool:
    folded = _OTHERS.sub("", lower.translate(_SEPARATORS))
    return folded.endswith("pass") or any(part in folded for part in _PARTS)


def _ends_in_name(before: str) -> bool:
    """True if a text before an assignment ends in a secret name."""
    return is_secret_name(_NO_NAME.split(before[-NAME_CHARS_MAX:].rstrip(_CLOSING))[-1])
