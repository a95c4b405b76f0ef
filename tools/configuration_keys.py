"""Keys of the configuration, as their sections in `proxy/config/` and the comments in these tell of them.

A key's text is the comment above it. A key without one shares the text of the key above it, and stands in the same
entry. A comment that begins with "Expert." makes an expert entry.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo, fields, replace

from proxy.config.config import Config
from proxy.config.reload import counting_after_restart
from proxy.config.types import Section

_EXPERT: Final = "Expert. "


class Counts(Enum):
    """The moment at which a new value of a key counts."""

    AT_ONCE = "at once"
    NEXT_SESSION = "next session"
    RESTART = "restart"


# Sections of which a session takes what holds as it is opened.
_BY_SESSION: Final = {"catalog"}
# Units by the end of a key's name. Of other numbers the name is the noun.
_UNITS: Final = {"_s": "seconds", "_bytes_max": "bytes", "_chars_max": "characters"}


@dataclass(frozen=True)
class Key:
    """One key of a section, with its default as TOML has it."""

    name: str
    # None for a key that has to be there, and empty for one that stands for any name.
    default: str | None
    values: tuple[str, ...]
    counts: Counts

    @property
    def unit(self) -> str:
        """The unit of its numbers, with a size in the usual unit behind it. Empty where it has none."""
        unit = next((unit for end, unit in _UNITS.items() if self.name.endswith(end)), "")
        if unit == "bytes":
            return f"{_size(int(self.default or 0))}, in bytes"
        return unit


@dataclass(frozen=True)
class Entry:
    """Keys that stand under one comment."""

    keys: tuple[Key, ...]
    text: str
    is_expert: bool


@dataclass(frozen=True)
class Table:
    """A table of the TOML file."""

    heading: str
    text: str
    entries: tuple[Entry, ...]


@cache
def tables() -> tuple[Table, ...]:
    """All tables, in the order of `Config`."""
    return tuple(_tables())


def _tables() -> Iterator[Table]:
    comments = _comments(Config)
    hints = get_type_hints(Config)
    for field in fields(Config):
        section = next(
            (kind for kind in (hints[field.name], *get_args(hints[field.name])) if _is_section(kind)), None
        )
        if section is None:
            counts = _counts(field.name, "", {"anna": ("bob",)})
            key = Key("LOGIN", "", (), counts)
            yield Table(f"[{field.name}]", "", (Entry((key,), comments[field.name], is_expert=False),))
        else:
            heading = f"[{field.name}]" if section is hints[field.name] else f"[[{field.name}]]"
            yield Table(heading, inspect.getdoc(section) or "", tuple(_entries(field.name, section)))


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _entries(name: str, section: type[Section]) -> Iterator[Entry]:
    comments = _comments(section)
    groups: list[tuple[str, list[FieldInfo]]] = []
    for field in fields(section):
        if field.name in comments:
            groups.append((comments[field.name], [field]))
        else:
            groups[-1][1].append(field)
    for text, members in groups:
        keys = tuple(_key(name, section, field) for field in members)
        yield Entry(keys, text.removeprefix(_EXPERT), text.startswith(_EXPERT))


def _key(section: str, kind: type[Section], field: FieldInfo) -> Key:
    hint = get_type_hints(kind)[field.name]
    literal = get_args(hint) if get_origin(hint) is Literal else ()
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    counts = _counts(section, field.name, _other(default, literal))
    return Key(
        field.name, None if default is msgspec.NODEFAULT else _toml(default), tuple(map(_toml, literal)), counts
    )


def _comments(section: type[Section]) -> dict[str, str]:
    """The comment above each field that has one."""
    lines = textwrap.dedent(inspect.getsource(section)).splitlines()
    found = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            first = node.lineno - 1
            while lines[first - 1].lstrip().startswith("# "):
                first -= 1
            said = [line.lstrip().removeprefix("# ") for line in lines[first : node.lineno - 1]]
            if said:
                found[node.target.id] = " ".join(said)
    return found


def _counts(section: str, key: str, other: object) -> Counts:
    """The moment at which another value counts, as the proxy itself says of it when it reads its file anew."""
    before = Config()
    was = getattr(before, section)
    # Of a table that may be there several times, or that has no keys of its own, all of it counts alike.
    now = replace(was, **{key: other}) if isinstance(was, Section) else other
    if counting_after_restart(before, replace(before, **{section: now})):
        return Counts.RESTART
    return Counts.NEXT_SESSION if section in _BY_SESSION else Counts.AT_ONCE


def _other(default: object, literal: tuple[object, ...]) -> object:
    """Any value but the default."""
    if literal:
        return next(value for value in literal if value != default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1
    return ("another",) if isinstance(default, tuple) else "another"


def _toml(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value))


def _size(count: int) -> str:
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count // size} {unit}"
    return f"{count} bytes"
