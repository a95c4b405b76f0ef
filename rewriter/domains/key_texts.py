"""Keys as people write them: in an option of a command, in a clause of a statement, in a table's property."""

from __future__ import annotations

import re
from datetime import date

from rewriter.domains.literals import Key, UnreadableKeyError, integers_of, literal

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL_TYPE = re.compile(r"decimal\((\d+),(\d+)\)")


def key_of_text(type_name: str, text: str) -> Key:
    """The key of the type that a text says. Raises UnreadableKeyError where it says none.

    >>> key_of_text("int", "30"), key_of_text("string", "30"), key_of_text("boolean", "TRUE")
    (30, '30', True)
    """
    try:
        key = _key(type_name, text)
    except UnreadableKeyError:
        raise
    except ValueError as error:
        raise UnreadableKeyError(f"no {type_name}") from error
    # Only a literal shows whether the type can hold it.
    _ = literal(type_name, key)
    return key


def _key(type_name: str, text: str) -> Key:
    if integers_of(type_name) is not None:
        if not _INTEGER.fullmatch(text.strip()):
            raise UnreadableKeyError("no whole number")
        return int(text)
    if type_name == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if type_name == "date":
        return date.fromisoformat(text).isoformat()
    decimal = _DECIMAL_TYPE.fullmatch(type_name)
    return text if decimal is None else _decimal(text, int(decimal[1]), int(decimal[2]))


def _decimal(text: str, precision: int, scale: int) -> str:
    """The text, unless Spark would have to round it to a value that was not said."""
    whole, _, fraction = text.lstrip("-").partition(".")
    if len(whole.lstrip("0")) > precision - scale or len(fraction) > scale:
        raise UnreadableKeyError("it does not fit the decimal")
    return text
