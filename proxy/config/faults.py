"""The faults of a configuration in words: all of them at once, each with its key and what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from proxy.config.types import WORDS, Section

# A key that the user may have meant is at least this similar to the one that was written, from 0 to 1.
_LIKENESS: Final = 0.6


def faults(tree: Mapping[str, Any], kind: type[Section], *, strict: bool, within: str = "") -> Iterator[str]:
    """A sentence for each key that is unknown, or whose value is none that it may have."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in tree.items():
        where = f"{within}{name}"
        known = fields.get(name)
        if known is None:
            yield f"{where}: there is no such {'key' if within else 'section'}{_nearest(name, within, fields)}"
        elif isinstance(known, type) and issubclass(known, Section) and isinstance(value, dict):
            yield from faults(value, known, strict=strict, within=f"{where}.")
        else:
            try:
                msgspec.convert(value, known, strict=strict)
            except msgspec.ValidationError as error:
                yield sentence(error, where, known)


def sentence(error: msgspec.ValidationError, where: str, kind: Any = None) -> str:
    """Msgspec's message behind the key as the user wrote it, with words in place of a pattern.

    >>> sentence(msgspec.ValidationError("Expected `int` >= 1 - at `$[0]`"), "rewrite.sizes")
    'rewrite.sizes[0]: Expected `int` >= 1'
    """
    said, _, path = str(error).partition(" - at `$")
    for pattern, words in WORDS.items():
        said = said.replace(f"`str` matching regex {pattern!r}", words)
    if get_origin(kind) is Literal and said.startswith("Invalid enum value"):
        said = f"{said}, expected {' or '.join(map(repr, get_args(kind)))}"
    place = f"{where}{path.rstrip('`')}".removeprefix(".")
    return f"{place}: {said}" if place else said


def _nearest(name: str, within: str, known: Mapping[str, object]) -> str:
    found = get_close_matches(name, known, n=1, cutoff=_LIKENESS)
    return f"; {within}{found[0]} is the nearest" if found else ""
