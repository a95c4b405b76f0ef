"""The tools that make pages and figures from the code."""

from pathlib import Path

import pytest

from tools.architecture_figures import figures
from tools.configuration_keys import Counts, tables

COUNTS = {
    f"{table.heading} {key.name}": key.counts
    for table in tables()
    for entry in table.entries
    for key in entry.keys
}


def test_a_room_stands_one_floor_above_the_highest_that_it_imports(tmp_path: Path) -> None:
    a_tree(tmp_path, ground="", middle="import tree.ground", top="from tree import ground, middle")
    found = figures("tree", tmp_path)
    assert (found.rooms, found.floors, found.arrows, found.arrows_in_circles) == (3, 3, 3, 0)
    assert found.mean_span == pytest.approx(4 / 3)


def test_rooms_that_import_one_another_share_a_floor(tmp_path: Path) -> None:
    a_tree(tmp_path, ground="", one="import tree.other", other="from tree.one import a\nimport tree.ground")
    found = figures("tree", tmp_path)
    assert (found.rooms, found.floors, found.arrows, found.arrows_in_circles) == (3, 2, 3, 2)


def a_tree(root: Path, **modules: str) -> None:
    (root / "tree").mkdir()
    for name, text in modules.items():
        (root / "tree" / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "counts"),
    [
        ("[proxy] listen", Counts.RESTART),
        ("[proxy] backends", Counts.AT_ONCE),
        ("[[listener]] transport", Counts.RESTART),
        ("[proxy_users] LOGIN", Counts.RESTART),
        ("[rewrite] enabled", Counts.AT_ONCE),
        ("[rewrite] key_cache_bytes_max", Counts.RESTART),
        ("[catalog] facts_ttl_s", Counts.NEXT_SESSION),
        ("[catalog] store_path", Counts.RESTART),
        ("[files] index", Counts.AT_ONCE),
    ],
)
def test_a_key_counts_when_the_proxy_says_so(key: str, counts: Counts) -> None:
    assert COUNTS[key] is counts
