"""Finding the end of a Thrift value without decoding it, without recursion, and before all of it has come.

The peer chooses how deep a value nests, so the skipper keeps its own stack, with a limit. It reads only lengths,
counts and field headers, and skips the bytes that they announce, whether those have come yet or not. Example: of
a string with length 1000 it reads the 4 bytes of the length, and moves its position by 1004.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.types import FIXED_BYTES, WIDTHS, Buffer, Kind, kind_of, table_by_kind

# The limit of Thrift's own Java and C++ readers; HiveServer2's structs nest no deeper than seven.
NESTING_MAX: Final = 64
# The longest of a length and the headers of a field, list or map, each of which is read in one piece.
HEADER_BYTES_MAX: Final = 6

_I32 = struct.Struct(">i")
_FIELD = struct.Struct(">Bh")
_LIST = struct.Struct(">Bi")
_MAP = struct.Struct(">BBi")


class ValueSkipper:
    """Finds the end of one value. It stops when the bytes end, and continues when more have come.

    The stack contains the values still to skip: a kind for a value, STOP for the rest of a struct, and a
    counted run of kinds for a list or map. `position` may lie past the bytes that have come.
    """

    def __init__(self, kind: Kind, position: int, values_max: int | None = None) -> None:
        """More values than `values_max` are refused as soon as they are announced, since each takes a step."""
        self.position = position
        self._stack: list[Kind | _Run] = [kind]
        self._values_left = sys.maxsize if values_max is None else values_max

    def advance(self, view: Buffer) -> int | None:
        """Return the offset after the value, None while it is incomplete. `view` may only grow between calls."""
        if self.position > len(view):
            return None
        while self._stack:
            top = self._stack[-1]
            step = ValueSkipper.run if isinstance(top, _Run) else _STEPS[top]
            if not step(self, view):
                return None
            if len(self._stack) > NESTING_MAX:
                raise RemoteProtocolError(f"a message nests deeper than {NESTING_MAX} levels")
        return self.position if self.position <= len(view) else None

    def drop_bytes(self, count: int) -> None:
        """Forget the first `count` bytes: the next `view` begins after them."""
        self.position -= count

    def run(self, view: Buffer) -> bool:
        """Skip one more item of a list or map; if all are strings, every item that has come."""
        run = self._stack[-1]
        assert isinstance(run, _Run)  # noqa: S101 - checked by advance()
        if run.left == 0:
            self._stack.pop()
        elif run.is_strings:
            return self._strings(run, view)
        else:
            run.left -= 1
            self._stack.append(run.kinds[run.left % len(run.kinds)])
        return True

    def _strings(self, run: _Run, view: Buffer) -> bool:
        # A column of text may be a million strings: this loop avoids a step for each.
        position, left, last = self.position, run.left, len(view) - _I32.size
        unpack = _I32.unpack_from
        while left and position <= last:
            length: int = unpack(view, position)[0]
            if length < 0:
                raise RemoteProtocolError(f"a string announces {length} bytes")
            position += _I32.size + length
            left -= 1
        self.position, run.left = position, left
        return left == 0

    def fixed(self, view: Buffer) -> bool:
        """Skip a number of fixed width."""
        top = self._stack[-1]
        assert isinstance(top, Kind)  # noqa: S101 - checked by advance()
        return self._pass(view, 0, FIXED_BYTES[top])

    def string(self, view: Buffer) -> bool:
        """Skip a length and its bytes."""
        if len(view) < self.position + _I32.size:
            return False
        return self._pass(view, _I32.size, _string_length(view, self.position))

    def struct(self, _view: Buffer) -> bool:
        """Begin a struct, which has no header of its own: the rest of its fields is to be skipped."""
        self._stack[-1] = Kind.STOP
        return True

    def rest_of_struct(self, view: Buffer) -> bool:
        """Skip fields up to a list, set or map, or to the STOP that ends the outermost of these structs.

        Nearly every value of a call is a number, a string or a struct: this loop avoids steps for each.
        """
        stack, position, last = self._stack, self.position, len(view) - 1
        while position <= last:
            number = view[position]
            if number == Kind.STOP:
                position += 1
                stack.pop()
                if stack and stack[-1] is Kind.STOP:
                    continue
                self.position = position
                return True
            kind = kind_of(number)
            if last < position + _FIELD.size - 1:
                break
            position += _FIELD.size
            self._announce(1)
            width = WIDTHS[number]
            if width:
                position += width
            elif kind is Kind.STRING and position + _I32.size - 1 <= last:
                position += _I32.size + _string_length(view, position)
            else:
                stack.append(Kind.STOP if kind is Kind.STRUCT else kind)
                if kind is not Kind.STRUCT or len(stack) > NESTING_MAX:
                    self.position = position
                    return True
        self.position = position
        return False

    def sequence(self, view: Buffer) -> bool:
        """Skip the header of a list or set, and its items at once if they have a fixed width."""
        if len(view) < self.position + _LIST.size:
            return False
        number, count = _LIST.unpack_from(view, self.position)
        kind = _item_kind(number, count)
        width = FIXED_BYTES.get(kind)
        if width is not None:
            return self._pass(view, _LIST.size, width * count)
        self.position += _LIST.size
        self._announce(count)
        self._stack[-1] = _Run((kind,), count, kind is Kind.STRING)
        return True

    def mapping(self, view: Buffer) -> bool:
        """Skip a map header; its keys and values follow in turn."""
        if len(view) < self.position + _MAP.size:
            return False
        key, value, count = _MAP.unpack_from(view, self.position)
        # An empty map may leave its kinds 0. The run counts down, so its even places are the values.
        kinds = (_item_kind(value, count), _item_kind(key, count))
        self.position += _MAP.size
        self._announce(2 * count)
        self._stack[-1] = _Run(kinds, 2 * count, kinds == (Kind.STRING, Kind.STRING))
        return True

    def _announce(self, count: int) -> None:
        self._values_left -= count
        if self._values_left < 0:
            raise RemoteProtocolError("a message announces more values than are accepted")

    def _pass(self, view: Buffer, header_bytes: int, content_bytes: int) -> bool:
        if len(view) < self.position + header_bytes:
            return False
        self.position += header_bytes + content_bytes
        self._stack.pop()
        return True


@dataclass
class _Run:
    """The rest of a list or map: `left` values, whose kinds alternate, counted from the last one."""

    kinds: tuple[Kind, ...]
    left: int
    # True if every value is a length and its bytes.
    is_strings: bool


def _string_length(view: Buffer, position: int) -> int:
    length: int = _I32.unpack_from(view, position)[0]
    if length < 0:
        raise RemoteProtocolError(f"a string announces {length} bytes")
    return length


def _item_kind(number: int, count: int) -> Kind:
    if count < 0:
        raise RemoteProtocolError(f"a list or map announces {count} items")
    kind = kind_of(number)
    if kind is Kind.STOP and count:
        raise RemoteProtocolError("a list or map announces items of type 0")
    return kind


_STEPS: Final[Sequence[Callable[[ValueSkipper, Buffer], bool]]] = table_by_kind(
    {
        Kind.STOP: ValueSkipper.rest_of_struct,
        Kind.STRING: ValueSkipper.string,
        Kind.STRUCT: ValueSkipper.struct,
        Kind.MAP: ValueSkipper.mapping,
        Kind.SET: ValueSkipper.sequence,
        Kind.LIST: ValueSkipper.sequence,
    },
    ValueSkipper.fixed,
)
