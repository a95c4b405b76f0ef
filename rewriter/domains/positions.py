"""Positions: the values of a type on a line, on which positions compare as Spark compares the values.

Every type that has keys is a line on which each position has a next one: integers, days and booleans; timestamps,
counted in microseconds; decimals, counted in units of their last place; strings, where the next one is the same
bytes and a zero byte. So any range of values is `low <= position < high`, whatever its bounds include, and
neighbouring ranges meet in one position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from rewriter.domains.instants import MICROS_MAX, MICROS_MIN
from rewriter.domains.literals import TIMES, Key, UnreadableKeyError, integers_of

# An int or bytes, never both on one line; Python has no type for values that compare with their own kind alone.
Position: TypeAlias = Any

# Lines that are cached: a statement has a handful of types, and there are 741 of decimal alone.
_LINES_MAX = 64

_DECIMAL_TYPE = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DIGITS_ALIKE = bytes.maketrans(b"0123456789", b"0000000000")
# Spark counts 32 bits of days from 1970. Python's ordinals count from the year 1, so the ends lie farther out.
_DAYS_MAX = 1 << 32
# Above every string: no UTF-8 text, and no text that Spark makes of other bytes, reaches it as a key.
_ABOVE_ALL_TEXT = b"\xff"


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range of values."""

    value: Key
    inclusive: bool


class Line(Protocol):
    """The positions of one type, from `bottom` up to but not including `top`."""

    @property
    def bottom(self) -> Position:
        """The least position."""

    @property
    def top(self) -> Position:
        """The end of the line: above every position."""

    @property
    def step(self) -> Position:
        """The difference between a position and the next one: nothing lies between them."""

    def positions(self, values: Iterable[Key]) -> list[Position]:
        """The positions of values, in their order. Raises UnreadableKeyError."""

    def width(self, low: Position, high: Position) -> float:
        """The number of values from `low` up to but not including `high`; infinity if they are endless."""

    def value(self, position: Position) -> Key:
        """The value at the position."""

    def low_bound(self, position: Position) -> Bound:
        """The condition that a value stands at the position or above it."""

    def high_bound(self, position: Position) -> Bound:
        """The condition that a value stands below the position."""


@lru_cache(maxsize=_LINES_MAX)
def line(type_name: str) -> Line:
    """The line of a type. Raises UnreadableKeyError for a type that has no keys."""
    held = integers_of(type_name)
    if held is not None:
        return _Numbers(type_name, held.start, held.stop, _integers, int)
    if type_name == "boolean":
        return _Numbers(type_name, 0, 2, _booleans, bool)
    if type_name == "date":
        return _Numbers(type_name, -_DAYS_MAX, _DAYS_MAX, _days, _day)
    if type_name in TIMES:
        return _Numbers(type_name, MICROS_MIN, MICROS_MAX + 1, _integers, int)
    if type_name == "string":
        return _Text()
    decimal = _DECIMAL_TYPE.fullmatch(type_name)
    if decimal is None:
        raise UnreadableKeyError(f"values of type {type_name} have no certain order, so they cannot be keys")
    precision, scale = map(int, decimal.groups())
    end = 10**precision
    return _Numbers(
        type_name, 1 - end, end, lambda texts: _units(texts, scale), lambda units: _decimal(units, scale)
    )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A type whose values can be counted."""

    type_name: str
    bottom: int
    top: int
    _count: Callable[[list[Key]], list[int]]
    _value: Callable[[int], Key]
    step: int = 1

    def positions(self, values: Iterable[Key]) -> list[Position]:
        given = list(values)
        try:
            counted = self._count(given)
        except (TypeError, ValueError) as problem:
            raise UnreadableKeyError(f"a key is not of its type {self.type_name}") from problem
        if counted and not self.bottom <= min(counted) <= max(counted) < self.top:
            raise UnreadableKeyError(f"a key does not fit its type {self.type_name}")
        return counted

    def width(self, low: Position, high: Position) -> float:
        return float(high - low)

    def value(self, position: Position) -> Key:
        return self._value(position)

    def low_bound(self, position: Position) -> Bound:
        if self._is_written(position):
            return Bound(self._value(position), inclusive=True)
        return Bound(self._value(position - 1), inclusive=False)

    def high_bound(self, position: Position) -> Bound:
        if self._is_written(position - 1):
            return Bound(self._value(position - 1), inclusive=True)
        return Bound(self._value(position), inclusive=False)

    def _is_written(self, position: int) -> bool:
        """True if the value has a literal: the days around the years 1 to 9999 have none."""
        return self.type_name != "date" or date.min.toordinal() <= position <= date.max.toordinal()


class _Text:
    """Strings as their UTF-8 bytes. The next position behind a text is the same text and a zero byte."""

    bottom: Position = b""
    top: Position = _ABOVE_ALL_TEXT
    step: Position = b"\0"

    def positions(self, values: Iterable[Key]) -> list[Position]:
        given: list[Any] = list(values)
        try:
            encoded = list(map(str.encode, given))
        except (TypeError, UnicodeEncodeError) as problem:
            raise UnreadableKeyError("a key of type string is no text, or has no UTF-8 bytes") from problem
        # Invalid UTF-8 has become U+FFFD on the way here: the key's real bytes are not known.
        if "\ufffd" in "".join(given):
            raise UnreadableKeyError("a key of type string has bytes that are not known")
        return encoded

    def width(self, low: Position, high: Position) -> float:
        is_finite = high == low.ljust(len(high), b"\0")
        return len(high) - len(low) if is_finite else math.inf

    def value(self, position: Position) -> Key:
        return str(position, "utf-8")

    def low_bound(self, position: Position) -> Bound:
        if position.endswith(b"\0"):
            return Bound(self.value(position[:-1]), inclusive=False)
        return Bound(self.value(position), inclusive=True)

    def high_bound(self, position: Position) -> Bound:
        if position.endswith(b"\0"):
            return Bound(self.value(position[:-1]), inclusive=True)
        return Bound(self.value(position), inclusive=False)


def differ_in_digits_only(texts: Sequence[str]) -> bool:
    """True if the texts are as long as one another and differ in nothing but their digits, as dates do.

    >>> differ_in_digits_only(["2024-01-02", "1999-12-31"]), differ_in_digits_only(["a1", "b1"])
    (True, False)
    """
    if len(set(map(len, texts))) > 1:
        return False
    # A hundred thousand keys are common, so they are compared as one text, which is equivalent as all have one
    # length. In UTF-8 a digit is never a part of another character.
    form = "".join(texts[:1]).encode().translate(_DIGITS_ALIKE)
    return "".join(texts).encode().translate(_DIGITS_ALIKE) == form * len(texts)


def _only(expected: type[Key], values: list[Any]) -> None:
    # Types are compared by identity, since a bool is an int to isinstance, and as sets, since a hundred thousand
    # keys are common.
    if set(map(type, values)) - {expected}:
        raise TypeError(expected)


def _integers(values: list[Any]) -> list[int]:
    _only(int, values)
    return values


def _booleans(values: list[Any]) -> list[int]:
    _only(bool, values)
    return [int(value) for value in values]


def _days(values: list[Any]) -> list[int]:
    _only(str, values)
    if not (all(map(_DATE.fullmatch, values[:1])) and differ_in_digits_only(values)):
        raise ValueError(_DATE.pattern)
    return list(map(date.toordinal, map(date.fromisoformat, values)))


def _day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()


def _units(values: list[Any], scale: int) -> list[int]:
    """Decimals as whole numbers of their last place: 1.5 of decimal(5,2) is 150."""
    _only(str, values)
    found = []
    for value in values:
        match = _DECIMAL.fullmatch(value)
        fraction = match[3] or "" if match else ""
        if match is None or len(fraction) > scale:
            raise ValueError(_DECIMAL.pattern)
        found.append(int(match[1] + match[2] + fraction.ljust(scale, "0")))
    return found


def _decimal(units: int, scale: int) -> str:
    digits = str(abs(units)).zfill(scale + 1)
    sign, point = "-" if units < 0 else "", len(digits) - scale
    return f"{sign}{digits[:point]}.{digits[point:]}" if scale else f"{sign}{digits}"
