"""Parts of the client's text as the cause of a refusal cites them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

# Enough to find the place in the statement. A list in a condition may be megabytes long.
_CITED_CHARS_MAX = 120

# Names of columns or tables in one cause.
_NAMES_MAX = 5


def cited(text: str) -> str:
    r"""A part of the text on one line and in quotes, and no more of it than shows which it is.

    >>> cited("c.day\n  < rand()"), cited("`c`.`day` < rand()")
    ('`c.day < rand()`', '"`c`.`day` < rand()"')
    """
    # More than will be shown, so that a list is not split as a whole.
    line = " ".join(text[: 2 * _CITED_CHARS_MAX].split())
    line = (
        line
        if len(line) <= _CITED_CHARS_MAX and len(text) <= 2 * _CITED_CHARS_MAX
        else f"{line[:_CITED_CHARS_MAX]} .."
    )
    return f'"{line}"' if "`" in line else f"`{line}`"


def listed(names: Iterable[str]) -> str:
    """Names as a list, of which the first ones are enough.

    >>> listed(["year", "month", "day"])
    'year, month, day'
    """
    found = list(islice(names, _NAMES_MAX + 1))
    return ", ".join([*found[:_NAMES_MAX], ".."] if len(found) > _NAMES_MAX else found)
