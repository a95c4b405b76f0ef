"""Keys whose new values count only after a restart, where the configuration is read anew.

The marks stand at the sections and keys themselves: `counts = Counts.AFTER_RESTART` in a section, and
`Annotated[.., AFTER_RESTART]` or `Annotated[.., AT_ONCE]` on a key that differs from its section.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, get_type_hints

from proxy.config.config import Config
from proxy.config.types import AFTER_RESTART, AT_ONCE, Counts, Section

_MARKS: Final = {Counts.AT_ONCE: AT_ONCE, Counts.AFTER_RESTART: AFTER_RESTART}


def counting_after_restart(before: Config, after: Config) -> tuple[str, ...]:
    """The changes that count only after a restart, as `[proxy]` or `rewrite.rerun_within_s`."""
    found: list[str] = []
    for name, counts in _counts(Config).items():
        was, now = getattr(before, name), getattr(after, name)
        if not isinstance(was, Section):
            found += [f"[{name}]"] if counts is Counts.AFTER_RESTART and was != now else []
            continue
        marked = [key for key, counts in _counts(type(was)).items() if counts is Counts.AFTER_RESTART]
        keys = [f"{name}.{key}" for key in marked if getattr(was, key) != getattr(now, key)]
        found += [f"[{name}]"] if keys and was.counts is Counts.AFTER_RESTART else keys
    return tuple(found)


@cache
def _counts(section: type[Section]) -> dict[str, Counts]:
    """When a new value of each key counts, as its mark or else its section says."""
    hints = get_type_hints(section, include_extras=True)
    return {key: _mark(hints[key]) or section.counts for key in section.__struct_fields__}


def _mark(hint: Any) -> Counts | None:
    return next((mark for mark, meta in _MARKS.items() if meta in getattr(hint, "__metadata__", ())), None)
