"""A sample file of the configuration, made from its sections: `python -m tools.sample_configuration`.

Each key stands behind a `#` without a space, with its default. Text stands behind `# `.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.configuration_keys import Key, Table, tables

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "deploy" / "starpruner.sample.toml"
COMMAND: Final = "python -m tools.sample_configuration"
WIDTH: Final = 115

_HEAD: Final = f"""\
# Configuration of Starpruner, for `starpruner serve --config`: every key with its default.
# Made by `{COMMAND}` from the comments in proxy/config/.
# docs/configuration.md says the same with links.
#
# Remove the # before a key to change it. `starpruner serve --check --config FILE` tells what is wrong.
# Behind a key stand its unit and when a new value counts after SIGHUP: at once, for the next session, or after a
# restart. Expert keys are limits with defaults that have a reason, for the case that the reason does not hold.
"""
# Values of keys that have no default.
_EXAMPLES: Final = {
    "[[listener]] listen": '"0.0.0.0:10002"',
    "[proxy_users] LOGIN": '["anna", "bob"]',
    "[[limits]] name": '"analysts"',
}
# A name for a key that stands for any name.
_NAMES: Final = {"LOGIN": "hue"}


def sample() -> str:
    """The whole file."""
    return "\n".join([_HEAD, *(line for table in tables() for line in _table(table))])


def uncommented(text: str) -> str:
    """The file with each key in force."""
    return "".join(
        line.removeprefix("#") if line.startswith("#") and not line.startswith(("# ", "#\n")) else line
        for line in text.splitlines(keepends=True)
    )


def _table(table: Table) -> Iterator[str]:
    # One that may be there several times would count as there.
    yield ("#" if table.heading.startswith("[[") else "") + table.heading
    yield from _said(table.text)
    yield ""
    for entry in sorted(table.entries, key=lambda entry: entry.is_expert):
        yield from _said(f"Expert. {entry.text}" if entry.is_expert else entry.text)
        yield from (_set(table, key) for key in entry.keys)
        yield ""


def _said(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )


def _set(table: Table, key: Key) -> str:
    value = key.default or _EXAMPLES[f"{table.heading} {key.name}"]
    values = "one of " + ", ".join(key.values) if key.values else ""
    notes = "; ".join(filter(None, [key.unit, values, key.counts.value]))
    return f"#{_NAMES.get(key.name, key.name)} = {value}  # {notes}"


if __name__ == "__main__":
    FILE.write_text(sample(), encoding="utf-8")
    sys.stdout.write(f"{FILE.relative_to(ROOT)}\n")
