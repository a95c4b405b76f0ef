"""Replicas that exchange their statements by files in a directory: real processes, and files that are damaged."""

import multiprocessing
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from errno import ENOSPC, ESTALE
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from support.histories import PATIENCE_S, left_alone, record, until

from proxy.config.serving import HistorySection
from proxy.history import replicas as replicas_module
from proxy.history.history import History
from proxy.history.queries import Filter, HistoryError, HistoryReader
from proxy.history.record import Record, ShadowRecord
from proxy.history.replicas import Replicas
from proxy.history.savings import total
from proxy.history.store import FILE_NAME
from proxy.kept_files import put_aside

TURN_S = 0.1
DAY_S = 86_400.0
FOREIGN = "0" * 24 + "-elsewhere.v1.jsonl.gz"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas_module, "EXCHANGE_EVERY_S", TURN_S)


@contextmanager
def replica(shared: Path, own: Path, **settings: Any) -> Iterator[History]:
    history = History(HistorySection(path=str(own), shared_path=str(shared), **settings), own)
    history.start()
    try:
        yield history
    finally:
        history.close()


def alone(shared: Path, own: Path, **settings: Any) -> Replicas:
    """The exchange without a history, with room for two statements that wait."""
    section = HistorySection(shared_path=str(shared), **settings)
    return Replicas(section, own, own_bytes_max=10_000_000, waiting_bytes_max=5_000)


def send(history: History, *records: Record) -> None:
    for one in records:
        assert history.began(one)
        history.ended(one)


def reader(history: History) -> HistoryReader:
    assert history.path is not None
    return HistoryReader(history.path)


def seen(history: History, wanted: Filter | None = None) -> list[str]:
    """The ids of the statements that a replica shows, the oldest first."""
    try:
        return [one.id for one in reversed(reader(history).statements(wanted or Filter(), 500).statements)]
    except HistoryError:
        return []


def how_many(history: History) -> int:
    """The statements that a replica has; a page shows 500 at most."""
    try:
        return sum(reader(history).sums(Filter()).outcomes.values())
    except HistoryError:
        return 0


def files(shared: Path) -> list[Path]:
    return sorted(shared.glob("[0-9a-f]*.jsonl.gz"))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[History, History]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(replica(tmp_path / "shared", tmp_path / name)) for name in "ab")
        yield one, other


def test_each_replica_shows_the_statements_of_all(pair: tuple[History, History], tmp_path: Path) -> None:
    sent = [record(original=f"SELECT '{name}'") for name in "aébc"]
    for number, one in enumerate(sent):
        send(pair[number % 2], one)
    for history in pair:
        until(lambda history=history: len(seen(history)) == len(sent))  # type: ignore[misc]
        for one in sent:
            assert reader(history).statement(one.id, None) == one
        assert len(seen(history, Filter(table="sales"))) == len(sent)
    assert [path.stat().st_mode & 0o077 for path in files(tmp_path / "shared")] == [0, 0]


def test_savings_are_by_originals_of_any_replica(pair: tuple[History, History]) -> None:
    one, other = pair
    send(other, *(left_alone(fingerprint="f1", run_s=5.0, deciding_s=0.0, lists_files=False) for _ in range(2)))
    send(one, record(run_s=1.0, deciding_s=0.0, lists_files=False))
    for history in pair:
        until(lambda history=history: len(seen(history)) == 3)  # type: ignore[misc]
        assert total(reader(history).savings(0.0).values()).measured_s == 4.0


def test_a_verdict_comes_after_its_statement(pair: tuple[History, History]) -> None:
    one, other = pair
    kept, verdict = record(), ShadowRecord("equal", "", 1.0)
    send(one, kept)
    until(lambda: seen(other) == [kept.id])
    one.compared(kept.id, verdict)
    until(lambda: (reader(other).statement(kept.id, None) or kept).shadow == verdict)


def test_workers_of_one_replica_have_each_statement_once(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    with replica(shared, own) as one, replica(shared, own) as other, replica(shared, tmp_path / "b") as third:
        send(one, *(left_alone() for _ in range(20)))
        send(other, *(left_alone() for _ in range(20)))
        until(lambda: len(seen(third)) == 40 and not other.state().notes[1:])
        (reason,) = reader(other).reasons(Filter(), 1)
        (digest,) = reader(other).digests(Filter())
        assert (len(seen(one)), reason.statements, digest.runs) == (40, 40, 40)


def test_a_file_that_was_put_aside_gets_the_statements_of_others_again(pair: tuple[History, History]) -> None:
    one, other = pair
    send(one, record())
    until(lambda: len(seen(other)) == 1)
    assert other.path is not None
    put_aside(
        other.path, "for the test", *(other.path.with_name(FILE_NAME + behind) for behind in ("-wal", "-shm"))
    )
    until(lambda: len(seen(other)) == 1)


def test_a_file_that_cannot_be_opened_is_tried_again(
    pair: tuple[History, History], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_stale(*_: object) -> None:
        raise OSError(ESTALE, "Stale file handle")

    one, other = pair
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", is_stale)
        send(one, record())
        until(lambda: "cannot be read: 1;" in other.state().notes[-1])
    until(lambda: len(seen(other)) == 1 and len(other.state().notes) == 1)


def write_until_killed(shared: Path, own: Path) -> None:
    replicas_module.EXCHANGE_EVERY_S = 0.01  # type: ignore[misc]
    with replica(shared, own) as history:
        while True:
            send(history, *(record(original="x" * 20_000) for _ in range(20)))
            time.sleep(0.02)


def test_a_replica_that_is_killed_as_it_writes_leaves_what_it_told_and_its_successor_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replicas_module, "EXCHANGE_EVERY_S", 0.001)
    shared = tmp_path / "shared"
    context = multiprocessing.get_context("spawn")
    with replica(shared, tmp_path / "other") as other:
        for life in range(3):
            writer = context.Process(target=write_until_killed, args=(shared, tmp_path / f"life{life}"))
            before = how_many(other)
            writer.start()
            until(lambda before=before: how_many(other) > before + 40)  # type: ignore[misc]
            writer.kill()
            writer.join()
        told = sum(len(lines(path)) for path in files(shared))
        until(lambda: how_many(other) == told)
        assert len(other.state().notes) == 1
    assert "cannot be read" not in caplog.text, "it has seen half a file"


def lines(path: Path) -> list[bytes]:
    return zlib.decompress(path.read_bytes(), wbits=31).split(b"\n")


def test_files_that_cannot_be_read_are_left_out_and_said_to_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = tmp_path / "shared"
    with replica(shared, tmp_path / "a") as one:
        send(one, record(), record())
    whole = files(shared)[0].read_bytes()
    files(shared)[0].unlink()
    for place, content in enumerate((whole[:-20], b"no gzip", zlib.compress(b"no JSON", wbits=31), whole)):
        (shared / f"{place}{FOREIGN[1:]}").write_bytes(content)
    (shared / FOREIGN.replace("v1", "v2")).write_bytes(whole)
    (shared / f".{FOREIGN}").write_bytes(whole[:-20])
    (shared / "notes.txt").write_text("somebody else's")
    with replica(shared, tmp_path / "b") as other:
        until(lambda: len(seen(other)) == 2 and len(other.state().notes) == 2)
        (note,) = other.state().notes[1:]
        assert note == "Files of other replicas that cannot be read: 4; see the log."
        (shared / FOREIGN).write_bytes(whole)
        until(lambda: "be read: 3;" in other.state().notes[1])
    assert caplog.text.count("elsewhere.v2.jsonl.gz, of another replica, cannot be read: another version") == 1


def test_lines_of_an_older_and_of_a_newer_version_are_read(tmp_path: Path) -> None:
    said = {key: getattr(record(), key) for key in ("id", "started_at", "user", "session", "client", "database")}
    older = {"record": said | {"original": "SELECT 1", "outcome": "original"}}
    newer = {"record": older["record"] | {"id": record().id, "later": 1}, "also": 2}
    (tmp_path / FOREIGN).write_bytes(zlib.compress(b"\n".join(map(json.encode, (older, newer))), wbits=31))
    with replica(tmp_path, tmp_path / "own") as one:
        until(lambda: how_many(one) == 2)


def aged(path: Path, days: float) -> Path:
    path.write_bytes(b"0123456789")
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return path


def test_files_of_ours_go_when_they_are_too_old(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    old, recent = (aged(shared / f"{place}{FOREIGN[1:]}", 8 - place) for place in range(2))
    others = aged(shared / "history.sqlite", 30)
    ahead = alone(shared, tmp_path / "own", days=7.5)
    ahead.start()
    until(lambda: "see the log" in ahead.notes[-1])
    ahead.close(PATIENCE_S)
    assert old.exists(), "a clock that is ahead of those of all others deletes nothing"
    with replica(shared, tmp_path / "a", days=7.5) as one:
        send(one, record())
        until(lambda: not old.exists())
        assert recent.exists()
        assert others.exists()


def test_the_oldest_files_go_where_all_take_too_much_room(tmp_path: Path) -> None:
    oldest, *rest = (aged(tmp_path / f"{place}{FOREIGN[1:]}", 1) for place in range(3))
    one = alone(tmp_path, tmp_path / "own", bytes_max=25)
    one.start()
    until(lambda: not oldest.exists())
    one.close(PATIENCE_S)
    assert files(tmp_path) == rest


def test_a_directory_that_is_away_holds_nothing_up_and_is_told_later(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.write_text("no directory")
    with replica(shared, tmp_path / "a") as one, replica(tmp_path / "real", tmp_path / "b") as other:
        kept = [record() for _ in range(3)]
        send(one, *kept)
        until(lambda: len(seen(one)) == 3 and "not exchanged" in one.state().notes[1])
        shared.unlink()
        shared.symlink_to(tmp_path / "real")
        until(lambda: seen(other) == [record.id for record in kept])
        until(lambda: len(one.state().notes) == 1)


def test_a_volume_that_is_full_leaves_the_file_as_it_was(
    pair: tuple[History, History], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    one, other = pair
    send(one, record())
    until(lambda: len(seen(other)) == 1)
    (file,) = files(tmp_path / "shared")
    before = file.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", is_full)
        send(one, record())
        until(lambda: "not exchanged" in one.state().notes[-1])
        assert file.read_bytes() == before
    until(lambda: len(seen(other)) == 2)


def test_statements_that_wait_for_a_directory_take_so_much_memory_and_no_more(tmp_path: Path) -> None:
    one = alone(tmp_path, tmp_path / "own")
    one.tell([record(original="x" * 1_000) for _ in range(10)], [])
    assert one.notes[-1] == "Other replicas lack 8 statements of this one."


def test_a_replica_without_a_file_of_its_own_reads_all_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas_module, "_FILE_BYTES", 300_000)
    shared = tmp_path / "shared"
    with replica(shared, tmp_path / "a") as one:
        send(one, *(record() for _ in range(450)), record(at=time.time() - 9 * DAY_S))
    assert len(files(shared)) == 3
    own = tmp_path / "b"
    other = alone(shared, own)
    other.start()
    until(lambda: len(other.notes) == 1)
    other.close(PATIENCE_S)
    assert HistoryReader(own / FILE_NAME).sums(Filter()).outcomes == {"rewritten": 450}
