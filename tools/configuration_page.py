"""docs/configuration.md, made from the sections of the configuration: `python -m tools.configuration_page`.

A key's text is the comment above it in `proxy/config/`. A key without one shares the text of the key above it, and
stands in the same entry. A comment that begins with "Expert." puts its entry into the second part of the page.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo, fields, replace

from proxy.config.config import Config
from proxy.config.reload import counting_after_restart
from proxy.config.types import Section

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "configuration.md"
COMMAND: Final = "python -m tools.configuration_page"
WIDTH: Final = 115
_EXPERT: Final = "Expert. "

_HEAD: Final = f"""\
<!-- Made by `{COMMAND}` from the comments in proxy/config/. Change those, and run it again. -->

# Configuration

`starpruner serve --config starpruner.toml`, and any key as `--set section.key=value`, the later ones winning. No
key has to be set. A wrong key or value stops the start and is named.

```toml
[proxy]
listen = "0.0.0.0:10001"
backend = "spark-host:10000"

[rewrite]
metastore = "postgresql"
```

On SIGHUP the file is read anew. Each key below says when its new value counts:

* **at once**: from the next statement on, in sessions that are open too;
* **next session**: in sessions that are opened from then on;
* **restart**: after a restart of the proxy. The log names such keys if they have changed.

Certificates are read anew on SIGHUP, and when their files change.

A client can set six keys of `[rewrite]` for its own session, in its JDBC URL (`..?starpruner.enabled=false`) or
by a statement:

```sql
SET starpruner.enabled=false;        -- every original is sent
SET starpruner.mode=shadow;          -- or rewrite
SET starpruner.consistency=strict;   -- or window
SET starpruner.cost_gate=false;      -- narrow every scan that may be narrowed
SET starpruner.key_staleness_s=60;   -- keys may be a minute old
SET starpruner.keys_remembered_s=0;  -- ask for keys before the statement is sent
```

An entry with several keys says the same of all of them. Most users need [the first part](#keys) alone, and of it a
handful; [expert keys](#expert-keys) are limits with defaults that have a reason, for the case that the reason does
not hold.
"""
_EXPERT_HEAD: Final = """\
# Expert keys

Limits and periods. Change one only if the log, `explain` or the metrics name it, or its reason does not hold for
you.
"""


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


def page() -> str:
    """The whole page."""
    tables = list(_tables())
    return "\n".join(
        [_HEAD, "# Keys\n", *_part(tables, is_expert=False), _EXPERT_HEAD, *_part(tables, is_expert=True)]
    )


def entries() -> Iterator[tuple[str, Entry]]:
    """All entries, each with the heading of its table."""
    return ((table.heading, entry) for table in _tables() for entry in table.entries)


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
    default = None if field.default is msgspec.NODEFAULT else _toml(field.default)
    other = _other(field.default, literal)
    return Key(field.name, default, tuple(map(_toml, literal)), _counts(section, field.name, other))


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


def _part(tables: list[Table], *, is_expert: bool) -> Iterator[str]:
    for table in tables:
        chosen = [entry for entry in table.entries if entry.is_expert == is_expert]
        if chosen:
            yield f"## `{table.heading}`" + (", expert keys" if is_expert else "") + "\n"
            if table.text and not is_expert:
                yield _linked(table.text) + "\n"
            yield from map(_said, chosen)
            yield ""


def _said(entry: Entry) -> str:
    ((counts, _),) = Counter(key.counts for key in entry.keys).most_common(1)
    head = ", ".join(f"**`{key.name}`**" + (f" = `{key.default}`" if key.default else "") for key in entry.keys)
    units = {key.unit for key in entry.keys}
    notes = [*filter(None, units)] if len(units) == 1 else []
    if entry.keys[0].default is None:
        notes.append("required")
    values = entry.keys[0].values
    if values:
        notes.append("one of " + ", ".join(f"`{value}`" for value in values))
    text = f"{head} ({'; '.join([*notes, counts.value])}). {_linked(entry.text)}"
    return textwrap.fill(
        text, WIDTH, initial_indent="* ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _linked(text: str) -> str:
    """The text with links to the decisions and modules that it names."""
    for decision in re.findall(r"docs/decisions/(\d{4})", text):
        (path,) = (ROOT / "docs" / "decisions").glob(f"{decision}-*.md")
        text = text.replace(f"docs/decisions/{decision}", f"[why](decisions/{path.name})")
    return re.sub(r"(?<![`\w])((?:proxy|rewriter)/[\w/]+\.py)", r"[`\1`](../\1)", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
