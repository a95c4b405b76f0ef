"""The search form of the page History: its fields, and the filter that they ask for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from proxy.history.queries import DAY_S, Filter, HistoryError

# The same as in GET /statements, except that times are in this machine's zone.
_TEXTS: Final = ("text", "outcome", "reason", "user", "table", "limit_met", "client", "label", "fingerprint")
_FIELDS: Final = (*_TEXTS, "last", "since", "until", "least_s", "order")
_FIELD_CHARS_MAX: Final = 500
# Spans of time that end now, in seconds.
LAST: Final = {"hour": 3_600.0, "24 hours": DAY_S, "7 days": 7 * DAY_S}


def fields_of(query: Mapping[str, str]) -> dict[str, str]:
    """The fields, empty where they are not given. Times override `last`."""
    asked = {name: query.get(name, "")[:_FIELD_CHARS_MAX].strip() for name in _FIELDS}
    return {**asked, "last": ""} if asked["since"] or asked["until"] else asked


def filter_of(asked: Mapping[str, str], seen_by: str | None, before: str = "") -> Filter:
    """The filter that the fields ask for. Raises HistoryError."""
    since, until = (_read(asked[name], _moment, "a time as 2026-05-31T18:30") for name in ("since", "until"))
    last = _read(asked["last"], LAST.__getitem__, f"for `last` one of {', '.join(LAST)}")
    times = {
        "since": since if last is None else time.time() - last,
        "until": until,
        "least_s": _read(asked["least_s"], float, "seconds as 2.5") or 0.0,
    }
    if since is not None and until is not None and since >= until:
        raise HistoryError("No time lies between From and To: To has to be later.")
    texts = {name: asked[name] for name in _TEXTS}
    order = "slowest" if asked["order"] == "slowest" else "newest"
    return Filter(seen_by=seen_by, before=before, order=order, **times, **texts)  # type: ignore[arg-type]


def _moment(value: str) -> float:
    return datetime.fromisoformat(value).timestamp()


def _read(value: str, read: Callable[[str], float], expected: str) -> float | None:
    try:
        found = read(value) if value else None
    except (ValueError, OverflowError, KeyError):
        found = math.nan
    if found is None or 0 <= found < math.inf:
        return found
    raise HistoryError(f"{value!r} is not understood: write {expected}.")
