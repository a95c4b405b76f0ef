"""The values of partition columns as bytes whose order is the order of the values, type by type.

Numbers of all kinds are integers of a fixed width, the most significant byte first and the sign bit turned;
strings are UTF-8 with a terminator. No value's bytes are the start of another one's.

Values come as Hive writes them into the names of directories. A value that cannot be read with certainty is
refused: the caller must count its partition as one that may match any filter.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Protocol

from rewriter.domains.literals import Key

# A zero byte inside a string gets a mark that is larger than the terminator's, so that "a" < "a\0" < "ab". The
# terminator is then the first zero byte with the smaller mark.
_ZERO = b"\x00\xff"
_TERMINATOR = b"\x00\x01"

_INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Of 38 digits at most, as in Spark: replicas share lists that name types, and a number's width follows from these.
_DECIMAL_TYPE = re.compile(r"decimal\(([1-9]|[12][0-9]|3[0-8]),([0-9]|[12][0-9]|3[0-8])\)")
_DECIMAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")
# The longest number of any type has 38 digits. Reading takes time quadratic in the length.
_NUMBER_CHARS_MAX = 100


class NotIndexableError(ValueError):
    """A value, a type, a column or a pattern that the ordered index cannot answer for with certainty."""


class Codec(Protocol):
    """The encoding of one type: its values are read from texts, and turned into fields and back."""

    def read(self, text: str) -> Key:
        """The value that Spark casts the text to. Raises NotIndexableError where that is not certain."""

    def encode(self, value: Key) -> bytes:
        """The field behind its first byte. Raises NotIndexableError for a value that is not of the type."""

    def decode(self, encoded: bytes) -> Key:
        """The value that `encode` encoded."""

    def end(self, key: bytes, start: int) -> int:
        """The end of an encoded value that starts there."""


class _Number:
    """A type whose values are integers of a fixed number of bytes, in their order."""

    def __init__(self, type_name: str, width: int) -> None:
        self.type_name = type_name
        self._width = width
        self._bias = 1 << 8 * width - 1

    def _count(self, value: Key) -> int:
        raise NotImplementedError

    def encode(self, value: Key) -> bytes:
        try:
            return (self._count(value) + self._bias).to_bytes(self._width)
        except OverflowError:
            raise self.refusal() from None

    def end(self, key: bytes, start: int) -> int:  # noqa: ARG002 - the width is the type's
        return start + self._width

    def _decoded(self, encoded: bytes) -> int:
        return int.from_bytes(encoded) - self._bias

    def refusal(self) -> NotIndexableError:
        return NotIndexableError(f"not certainly a {self.type_name}")


class _Integer(_Number):
    def read(self, text: str) -> Key:
        if len(text) > _NUMBER_CHARS_MAX or not _INTEGER.fullmatch(text):
            raise self.refusal()
        return int(text)

    def _count(self, value: Key) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refusal()
        return value

    def decode(self, encoded: bytes) -> Key:
        return self._decoded(encoded)


class _Boolean(_Number):
    def read(self, text: str) -> Key:
        if text.lower() not in {"true", "false"}:
            raise self.refusal()
        return text.lower() == "true"

    def _count(self, value: Key) -> int:
        if not isinstance(value, bool):
            raise self.refusal()
        return value

    def decode(self, encoded: bytes) -> Key:
        return bool(self._decoded(encoded))


class _Date(_Number):
    """Days, of years with four digits."""

    def read(self, text: str) -> Key:
        return text

    def _count(self, value: Key) -> int:
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            raise self.refusal()
        try:
            return date.fromisoformat(value).toordinal()
        except ValueError:
            raise self.refusal() from None

    def decode(self, encoded: bytes) -> Key:
        return date.fromordinal(self._decoded(encoded)).isoformat()


class _Decimal(_Number):
    """Exact multiples of the last digit. Values that Spark would round are refused."""

    def __init__(self, type_name: str, precision: int, scale: int) -> None:
        super().__init__(type_name, ((10**precision).bit_length() + 8) // 8)
        self._scale = scale
        self._count_max = 10**precision - 1

    def read(self, text: str) -> Key:
        return text

    def _count(self, value: Key) -> int:
        found = _DECIMAL.fullmatch(value) if isinstance(value, str) and len(value) <= _NUMBER_CHARS_MAX else None
        if found is None:
            raise self.refusal()
        sign, whole, fraction = found[1], found[2], found[3] or ""
        count = int(whole + fraction[: self._scale].ljust(self._scale, "0"))
        if count > self._count_max or fraction[self._scale :].strip("0"):
            raise self.refusal()
        return -count if sign == "-" else count

    def decode(self, encoded: bytes) -> Key:
        count = self._decoded(encoded)
        digits = str(abs(count)).rjust(self._scale + 1, "0")
        whole, fraction = digits[: len(digits) - self._scale], digits[len(digits) - self._scale :]
        return f"{'-' if count < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


class _String:
    """UTF-8, whose byte order is Spark's order of strings."""

    def read(self, text: str) -> Key:
        return text

    def encode(self, value: Key) -> bytes:
        return encoded_prefix(value) + _TERMINATOR

    def decode(self, encoded: bytes) -> Key:
        return encoded[: -len(_TERMINATOR)].replace(_ZERO, b"\x00").decode()

    def end(self, key: bytes, start: int) -> int:
        found = key.find(_TERMINATOR, start)
        return found + len(_TERMINATOR) if found >= 0 else len(key) + 1


def encoded_prefix(value: Key) -> bytes:
    """The first bytes of the encoding of a string, and of every string that starts with it."""
    if not isinstance(value, str) or "\ufffd" in value:
        # Bytes that are not UTF-8 have become U+FFFD: the original bytes are not known.
        raise NotIndexableError("not certainly a string")
    try:
        return value.encode().replace(b"\x00", _ZERO)
    except UnicodeEncodeError:
        raise NotIndexableError("not certainly a string") from None


def codec(type_name: str) -> Codec:
    """The encoding of a type. Raises NotIndexableError for a type without a certain order."""
    if type_name in _INTEGER_BYTES:
        return _Integer(type_name, _INTEGER_BYTES[type_name])
    if found := _DECIMAL_TYPE.fullmatch(type_name):
        return _Decimal(type_name, int(found[1]), int(found[2]))
    try:
        return _OTHER_CODECS[type_name]
    except KeyError:
        raise NotIndexableError(f"values of type {type_name} have no certain order") from None


_OTHER_CODECS: dict[str, Codec] = {
    "boolean": _Boolean("boolean", 1),
    "date": _Date("date", 4),
    "string": _String(),
}
