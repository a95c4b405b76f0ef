"""docs/soundness.md lists the rules that are tested: every mutation, every golden file, and no other."""

import re
from pathlib import Path

from mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "soundness.md"


def rows() -> list[list[str]]:
    """The table's rows, each the cells for rule, module, golden cases, mutation and what caught it."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(column: int) -> set[str]:
    return {name for row in rows() for name in re.findall("`([^`]+)`", row[column])}


def test_the_page_lists_every_mutation_with_what_caught_it() -> None:
    assert [(row[3], row[4]) for row in rows()] == [(mutation.clause, mutation.catcher) for mutation in MUTATIONS]


def test_the_page_names_every_file_of_golden_cases() -> None:
    assert names(2) == {path.stem for path in (ROOT / "tests/rewriter/golden").rglob("*.toml")}


def test_the_modules_that_the_page_names_are_there() -> None:
    assert [name for name in names(1) if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether there is such a file, or such a module of the rewriter, by itself or in a package."""
    if "/" in name:
        return (ROOT / name).is_file()
    parts = name.split(".")
    return any((ROOT / "rewriter" / "/".join(parts[:depth])).with_suffix(".py").is_file() for depth in (1, 2))
