"""Numbers, times and texts as the pages show them, and the templates that use these."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from proxy.session.explain.text import without_files

UNKNOWN: Final = "unknown"
# Shown in place of an empty cell, which a screen reader would pass over.
_NONE: Final = "-"
_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3_600.0
_ROW: Final = re.compile(r"(?=<tr\b)")
_COLUMN: Final = re.compile(r'<th scope="col"[^<>]*+>([^<]*+)')
_PART: Final = re.compile(r"<(table|thead|tbody|tr|td|th)\b([^<>]*+)>")
_ROLES: Final = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}


def templates(directory: Path) -> Environment:
    """The templates of a directory. Every value is escaped, and a name that is not there is an error."""
    environment = Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "count": count,
        "plural": plural,
        "seconds": seconds,
        "size": size,
        "percent": percent,
        "moment": moment,
        "clock": clock,
        "local": local,
        "iso": iso,
        "code": code,
        "cards": cards,
        "without_files": without_files,
        "prose": prose,
    }
    environment.globals["zone"] = zone
    return environment


def cards(page: Markup) -> Markup:
    """Add roles to a page's tables, and the column's name to each cell: narrow screens show rows as blocks."""
    before, *tables = str(page).split("<table")
    return Markup(before + "".join(map(_labelled, tables)))  # noqa: S704 - it was one before


def _labelled(behind: str) -> str:
    table = f"<table{behind}"
    names = _COLUMN.findall(table)
    return "".join(_PART.sub(partial(_part, iter(names)), row) for row in _ROW.split(table))


def _part(names: Iterator[str], found: re.Match[str]) -> str:
    """Add the role and the label to a tag of a table; `names` yields the names of the columns from here on."""
    tag, attributes = found.groups()
    role = _ROLES.get(tag) or ("columnheader" if "col" in attributes else "rowheader")
    label = f' data-label="{next(names, "")}"' if tag in {"td", "th"} else ""
    return f'<{tag}{attributes} role="{role}"{label}>'


def now() -> float:
    """The time of day."""
    return time.time()


def count(number: float | None) -> str:
    """A number with its thousands apart.

    >>> count(2924)
    '2,924'
    """
    return UNKNOWN if number is None else f"{number:,.0f}"


def plural(number: float, one: str, several: str | None = None) -> str:
    """A number of things.

    >>> plural(1, "statement"), plural(2_000, "statement")
    ('1 statement', '2,000 statements')
    """
    return f"{count(number)} {one if number == 1 else several or one + 's'}"


def seconds(number: float | None) -> str:
    """A time with as many digits as tell something.

    >>> [seconds(each) for each in (0.0721, 1.5, 75, 7300, -1.5, None)]
    ['72 ms', '1.5 s', '1 min 15 s', '2 h 1 min', '-1.5 s', '-']
    """
    if number is None:
        return _NONE
    if number < 0:
        return f"-{seconds(-number)}"
    if number < 1:
        return f"{number * 1000:.0f} ms"
    if number < _MINUTE_S:
        return f"{number:.1f} s"
    if number < _HOUR_S:
        return f"{number // 60:.0f} min {number % 60:.0f} s"
    return f"{number // 3600:.0f} h {number % 3600 // 60:.0f} min"


def size(number: float | None) -> str:
    """Bytes in the unit that suits them.

    >>> size(1_234_567)
    '1.2 MB'
    """
    if number is None:
        return UNKNOWN
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < 1_000:  # noqa: PLR2004 - the step between units
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1_000
    return f"{number:,.1f} TB"


def percent(part: float | None, whole: float | None) -> str:
    """A part of a whole.

    >>> percent(2_800, 2_924), percent(1, 1_000)
    ('96%', '1%')
    """
    if part is None or not whole:
        return _NONE
    # A part that is less than the whole is never shown as 100%, and one that is more than nothing not as 0%.
    share = min(100.0, 100 * part / whole)
    return f"{max(1.0, min(99.0, share)) if 0 < part < whole else share:.0f}%"


def prose(sentence: str) -> Markup:
    """A sentence with the code that it cites between backquotes set as code.

    >>> str(prose("set `a<b`"))
    'set <code>a&lt;b</code>'
    """
    parts = (
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(sentence.split("`"))
    )
    return Markup("").join(parts)


def moment(at: float) -> str:
    """A day and a time, by the time zone of this machine, which is named."""
    return f"{local(at, '%Y-%m-%d %H:%M:%S')} {zone(at)}"


def zone(at: float | None = None) -> str:
    """The time zone of this machine, now or at another time: its name, if it has one, and its offset."""
    there = time.localtime(at)
    offset = time.strftime("%z", there)
    written = f"UTC{offset[:3]}:{offset[3:]}"
    # Zones without a name are called by their offset.
    if not there.tm_zone.isalpha():
        return written
    return "UTC" if there.tm_zone == "UTC" else f"{there.tm_zone} ({written})"


def clock(at: float) -> str:
    """The time of day, with the day if that is not today."""
    there, here = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if there[:3] == here[:3] else "%b %d %H:%M", there)


def local(at: float, pattern: str) -> str:
    """A time in the form of a pattern, in the time zone of this machine."""
    return time.strftime(pattern, time.localtime(at))


def iso(at: float) -> str:
    """A time for programs."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def code(name: str) -> str:
    """A code as words.

    >>> code("NOT_A_PARTITION_COLUMN")
    'not a partition column'
    """
    return name.replace("_", " ").lower()
