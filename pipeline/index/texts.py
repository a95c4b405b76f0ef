"""Texts of values in the file index."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

# A longer string is no bound: the proxy of every session holds two for each column of each file.
STRING_CHARS_MAX = 256
# Terminals and logs garble control characters, and U+FFFD stands for unknown bytes.
_UNFIT_STRING = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ufffd]")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def key_text(type_name: str, text: str | None) -> str | None:
    """The text in the index of a value that Spark cast to a string; None if it can be no bound.

    >>> key_text("decimal(10,8)", "1E-7")
    '0.0000001'
    >>> key_text("date", "+10000-01-01") is None
    True
    """
    if text is None:
        return None
    if type_name.startswith("decimal"):
        return _decimal_text(text)
    if type_name == "date":
        return text if _DATE.fullmatch(text) else None
    if type_name == "string":
        return text if len(text) <= STRING_CHARS_MAX and not _UNFIT_STRING.search(text) else None
    return text


def _decimal_text(text: str) -> str | None:
    try:
        return format(Decimal(text), "f")
    except InvalidOperation:
        return None
