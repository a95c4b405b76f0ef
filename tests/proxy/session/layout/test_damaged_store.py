"""A store of partition lists whose file was cut or overwritten: the next start goes on with what is whole.

Each look at a store that should have been put aside ends this process.
"""

import logging
import os
import random
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from demo.hive import Endpoint, free_port
from demo.proxy_process import proxy_process
from proxy.config.errors import ConfigError
from proxy.config.rewriting import CatalogSection
from proxy.session.layout import store_check
from proxy.session.layout.lmdb_store import lmdb_store
from proxy.session.layout.partition_store import ListKey
from rewriter.partitions.filter_tree import And

PAGE = 4096
TABLES = range(3)
DAYS = [f"ds=2026-01-01/n={number:05d}" for number in range(150)]


def key_of(table: int) -> ListKey:
    return ListKey(("ann",), (f"t{table}", "default"))


def fill(directory: Path) -> bytes:
    """Lists of which one was replaced and one dropped, so that there are free pages; the file that keeps them."""
    with lmdb_store(CatalogSection(store_path=str(directory))) as store:
        for table in (*TABLES, TABLES[1], 9):
            assert store.put(key_of(table), ("ds", "n"), ("date", "string"), DAYS)
        store.forget({"t9"})
    return (directory / "data.mdb").read_bytes()


def lists_in(directory: Path) -> list[list[str] | None]:
    """All lists in a store that is opened, once it has shown that it serves."""
    with lmdb_store(CatalogSection(store_path=str(directory))) as store:
        found = [store.get(key_of(table)) for table in TABLES]
        lists = [None if index is None else list(index.matching(And(()))) for index in found]
        assert store.put(key_of(7), ("ds", "n"), ("date", "string"), DAYS)
        assert store.get(key_of(7)) is not None
        store.forget({"t7"})
    return lists


ALL, NONE = [DAYS] * len(TABLES), [None] * len(TABLES)


def test_a_store_that_was_cut_at_any_page_is_put_aside_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = fill(tmp_path)
    sizes = (1, *range(PAGE, len(whole), PAGE), len(whole) - 1)
    kept = []
    for size in sizes:
        (tmp_path / "data.mdb").write_bytes(whole[:size])
        caplog.clear()
        if (lists := lists_in(tmp_path)) == ALL:
            # Nothing but free pages was cut off.
            kept.append(size)
            assert not caplog.messages
            continue
        assert lists == NONE, size
        (word,) = caplog.messages
        assert "data.mdb is damaged" in word
        assert "kept as data.damaged, and begun anew" in word
        assert (tmp_path / "data.damaged").read_bytes() == whole[:size]
        caplog.clear()
        assert lists_in(tmp_path) == NONE
        assert not caplog.messages
    assert len(kept) < len(sizes) / 2
    assert kept == list(sizes[-len(kept) :])


@pytest.mark.parametrize(
    "page",
    [lambda _: bytes(PAGE), lambda place: random.Random(place).randbytes(PAGE)],  # noqa: S311 - not for secrets
    ids=["zeros", "noise"],
)
def test_a_store_with_a_page_overwritten_is_put_aside_or_has_all_its_lists(
    page: Callable[[int], bytes], tmp_path: Path
) -> None:
    whole = fill(tmp_path)
    aside = 0
    for place in range(0, len(whole), PAGE):
        (tmp_path / "data.mdb").write_bytes(whole[:place] + page(place) + whole[place + PAGE :])
        lists = lists_in(tmp_path)
        assert lists in (ALL, NONE), place
        aside += lists == NONE
    # The two pages at the start, four or more for each list; a page that is free harms nobody.
    assert aside >= 2 + 4 * len(TABLES)


@pytest.mark.parametrize(
    "content", [b"", b"no store at all" * 1_000, bytes(10 * PAGE)], ids=["empty", "text", "zeros"]
)
def test_a_file_that_is_no_store_does_not_keep_the_proxy_from_its_start(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(content)
    assert lists_in(tmp_path) == NONE
    # An empty file is a new store, as LMDB has it.
    assert (tmp_path / "data.damaged").exists() is bool(content)


@pytest.mark.parametrize("damage", [b"", b"x", bytes(PAGE), b"noise" * 20_000], ids=len)
def test_a_store_keeps_its_lists_where_it_has_grown_by_a_hole_or_its_lock_file_is_damaged(
    damage: bytes, tmp_path: Path
) -> None:
    size = len(fill(tmp_path))
    os.truncate(tmp_path / "data.mdb", size + 100 * PAGE)
    (tmp_path / "lock.mdb").write_bytes(damage)
    assert lists_in(tmp_path) == ALL
    # A full disk has no room for the holes of a file that is mapped, and says so by SIGBUS.
    lock = (tmp_path / "lock.mdb").stat()
    assert lock.st_blocks * 512 >= lock.st_size


def test_a_walk_without_end_is_ended_and_counts_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path)
    monkeypatch.setattr(store_check, "_SECONDS_MAX", 1e-6)
    assert lists_in(tmp_path) == NONE
    assert "it cannot be read within 1e-06 s" in caplog.text


def test_another_kind_of_file_in_its_place_is_no_damage_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").mkdir()
    with pytest.raises(ConfigError, match=r"catalog.store_path: .* cannot be opened: .*[Ii]s a directory"):
        lists_in(tmp_path)
    assert (tmp_path / "data.mdb").is_dir()


def _hold(directory: str, opened: Callable[[], None], wait: Callable[[], object]) -> None:
    with lmdb_store(CatalogSection(store_path=directory)) as store:
        assert store.get(key_of(0)) is not None
        opened()
        wait()
        lists_in(Path(directory))


def test_a_process_starts_where_the_store_was_cut_under_another_one(tmp_path: Path) -> None:
    whole, context = fill(tmp_path), get_context("spawn")
    opened, cut = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(str(tmp_path), opened.set, cut.wait))
    other.start()
    assert opened.wait(60)
    os.truncate(tmp_path / "data.mdb", len(whole) // 2)
    assert lists_in(tmp_path) == NONE
    with lmdb_store(CatalogSection(store_path=str(tmp_path))) as store:
        store.put(key_of(1), ("ds", "n"), ("date", "string"), DAYS)
    assert lists_in(tmp_path) == [None, DAYS, None]
    other.kill()
    other.join()


def test_a_proxy_of_two_workers_starts_on_a_store_that_was_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    directory = tmp_path / "lists"
    whole = fill(directory)
    os.truncate(directory / "data.mdb", len(whole) // 2)
    options = ("--set", f"catalog.store_path={directory}", "--set", "proxy.workers=2")
    with proxy_process(Endpoint("127.0.0.1", free_port()), tmp_path / "proxy", options=options) as proxy:
        log = proxy.child.log.read_text()
    assert log.count("data.mdb is damaged (reading it ends in SIGBUS)") == 1
    assert lists_in(directory) == NONE
