"""Pages of docs/ whose blocks tests run: a block stands behind a marker, `<!-- guide: name -->`."""

import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def guide(page: str) -> str:
    """The text of a page."""
    return (DOCS / page).read_text(encoding="utf-8")


def block(text: str, name: str) -> str:
    """A block of a guide."""
    found = re.search(rf"^<!-- guide: {name} -->\n```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the guide has no block {name}"
    return found[1]


def changed(commands: str, changes: Mapping[str, str]) -> str:
    """The commands of a block, with what is run otherwise by a test."""
    for before, after in changes.items():
        assert before in commands, f"the guide no longer has what is run otherwise here: {before}"
        commands = commands.replace(before, after)
    return commands
