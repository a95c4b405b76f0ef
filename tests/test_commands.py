"""Commands that are written down name what is there: files, tests, targets of make, and modules to run."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
TREES = ("rewriter", "proxy", "pipeline", "demo", "tests", "tools", "benchmarks")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w.-]+):", MAKEFILE, re.MULTILINE))

# A file or folder of ours where a word of a command begins, and a test in it.
PATH = re.compile(rf"(?<![\w./<>{{-])((?:{'|'.join(TREES)}|docs|deploy)/[\w./-]*[\w/-])(?:::(\w+))?")
CODE = re.compile(r"^ *```.*?^ *```|(`+).+?\1", re.DOTALL | re.MULTILINE)
DOCSTRING = re.compile(r'r?"""(.*?)"""', re.DOTALL)


def written() -> Iterator[tuple[str, str]]:
    """Places, and the code that stands there: on pages, in the Makefile, and in docstrings of modules."""
    for page in PAGES:
        yield page.relative_to(ROOT).as_posix(), code(page.read_text(encoding="utf-8"))
    yield "Makefile", MAKEFILE
    for path in (path for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))):
        if docstring := DOCSTRING.match(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT).as_posix(), code(docstring[1])


def code(text: str) -> str:
    return "\n".join(match[0] for match in CODE.finditer(text))


def missing(code: str) -> list[str]:
    """All that a command names and that is not there."""
    paths = [path + (f"::{test}" if test else "") for path, test in PATH.findall(code) if not is_there(path, test)]
    targets = [f"make {name}" for name in re.findall(r"\bmake ([a-z][\w.-]*)", code) if name not in TARGETS]
    modules = [name for name in re.findall(r"\bpython3? -m ([\w.]+)", code) if not is_module(name)]
    return paths + targets + modules


def is_there(path: str, test: str) -> bool:
    """In the tables of docs/soundness.md tests are named from their folder, and NAME stands for any."""
    found = [place for place in (ROOT / path, ROOT / "tests" / path) if place.exists()]
    if not test or not found:
        return bool(found) or "NAME" in path
    return f"def {test}(" in found[0].read_text(encoding="utf-8")


def is_module(name: str) -> bool:
    tree, _, rest = name.partition(".")
    if tree not in TREES:
        return find_spec(tree) is not None
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() if rest else (path / "__main__.py").exists()


def test_what_a_command_names_is_there() -> None:
    found = {place: missing(code) for place, code in written()}
    assert len(found) > 500
    assert {place: names for place, names in found.items() if names} == {}


def test_what_is_not_there_is_found() -> None:
    assert missing(".venv/bin/pytest -k joins tests/gone tests/rewriter tests/test_commands.py::test_gone") == [
        "tests/gone",
        "tests/test_commands.py::test_gone",
    ]
    assert missing("make check gone && make gone") == ["make gone"]
    assert missing("python -m tools.gone; python -m venv; python -m gone; python -m tools.reach_table") == [
        "tools.gone",
        "gone",
    ]
