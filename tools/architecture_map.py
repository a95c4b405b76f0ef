"""The map in docs/architecture.md, made from docstrings: `python -m tools.architecture_map`.

The order is that of `ORDER` in tests/test_architecture.py, and each line is the first one of the docstring of a
package, or of a module that stands by itself.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
COMMAND: Final = "python -m tools.architecture_map"
BEGIN: Final = f"<!-- map: made by {COMMAND} -->"
END: Final = "<!-- end of the map -->"
WIDTH: Final = 115


def page(now: str) -> str:
    """The page with the map as the code has it."""
    before, _, rest = now.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_map()}\n{END}{after}"


def order() -> Mapping[str, tuple[str, ...]]:
    """Packages of each tree, lower ones first, as the test of imports holds them."""
    source = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER":
            found: dict[str, tuple[str, ...]] = ast.literal_eval(node.value)
            return found
    raise LookupError("tests/test_architecture.py has no ORDER")


def _map() -> str:
    return "\n".join(f"### `{tree}/`\n\n{_first_line(ROOT / tree)}\n\n{_lines(tree)}" for tree in order())


def _lines(tree: str) -> str:
    return "\n".join(_line(tree, place) for place in order()[tree]) + "\n"


def _line(tree: str, place: str) -> str:
    path = ROOT / tree / place.replace(".", "/")
    is_package = path.is_dir()
    name = f"{place.replace('.', '/')}/" if is_package else f"{place}.py"
    return textwrap.fill(
        f"* [`{name}`](../{tree}/{name}): {_first_line(path if is_package else path.with_suffix('.py'))}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _first_line(path: Path) -> str:
    module = path / "__init__.py" if path.is_dir() else path
    documentation = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return documentation.partition("\n")[0]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
