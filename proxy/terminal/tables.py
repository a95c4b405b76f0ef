"""Tables as lines of plain text, whose last column takes the room that is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_GAP: Final = "  "
# Clients choose names, and reasons may be many: the columns before the last get no wider.
_CELL_CHARS_MAX: Final = 60
# The last column keeps this much of a narrow terminal.
_LAST_CHARS_MIN: Final = 20


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], chars_max: int | None) -> list[str]:
    """The lines of a table; a header that ends with `>` is of a column of numbers. None does not cut any line.

    >>> table(["name", "runs>", "text"], [["a", "7", "SELECT 1"], ["b", "1,000", "SELECT 22"]], 30)
    ['name   runs  text', 'a         7  SELECT 1', 'b     1,000  SELECT 22']
    """
    lines = [[header.removesuffix(">") for header in headers], *(list(map(plain, row)) for row in rows)]
    lines = [[*(cell[:_CELL_CHARS_MAX] for cell in line[:-1]), line[-1]] for line in lines]
    widths = [max(map(len, column)) for column in list(zip(*lines, strict=True))[:-1]]
    taken = sum(widths) + len(_GAP) * len(widths)
    last_chars = None if chars_max is None else max(_LAST_CHARS_MIN, chars_max - taken)
    return [_GAP.join([*_padded(line, headers, widths), line[-1][:last_chars]]).rstrip() for line in lines]


def _padded(line: Sequence[str], headers: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if header.endswith(">") else cell.ljust(width)
        for cell, header, width in zip(line, headers, widths, strict=False)
    ]


def plain(text: str) -> str:
    r"""The text in one line, without characters that a terminal obeys: clients choose it.

    >>> plain("SELECT\n  '\x1b[2J'")
    "SELECT ' [2J'"
    """
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
