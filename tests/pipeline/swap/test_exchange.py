"""The exchange of a partition with readers, writers and kills at every step, on a file system in memory."""

from collections import Counter
from dataclasses import replace

import pytest
from support.exchanged_world import BEFORE, GRACE_S, HOME, SMALL, WAITING, Disk, World, away, changes

from pipeline.spark.errors import PipelineError
from pipeline.swap.record import exchanges, write_record
from pipeline.tables.reserved_paths import EXCHANGES
from pipeline.tables.storage import StoredFile


def test_a_partition_comes_home_with_fewer_files_and_the_same_rows() -> None:
    world = World()
    assert world.compact()
    assert world.time_s >= GRACE_S
    assert {file.name for file in world.disk.stored(HOME)} == {"merged", "large"}
    assert world.seen() == BEFORE
    world.end()
    assert world.is_home_and_clean()


def test_a_reader_sees_all_rows_once_at_every_moment_and_keeps_the_files_it_listed() -> None:
    world = World()
    listed: list[tuple[float, list[str]]] = []

    def read(_: int) -> None:
        assert world.seen() == BEFORE
        place = world.catalog.places[HOME]
        listed.append((world.time_s, [f"{place}/{file.name}" for file in world.disk.stored(place)]))
        for since_s, paths in listed:
            assert world.time_s - since_s >= GRACE_S or all(path in world.disk.content for path in paths)

    world.disk.between = read
    world.compact()
    world.disk.between = lambda _: None
    world.end()
    assert len({tuple(paths) for _, paths in listed}) == 3, "the old files, the second place, and home again"


@pytest.mark.parametrize("place_of", ["as it was", "as it is"])
def test_what_is_appended_at_any_moment_is_there_once_though_the_process_is_killed_at_any(place_of: str) -> None:
    for appended in changes():
        for killed in (*changes(), -1):
            world = World()

            def append(change: int, world: World = world, appended: int = appended) -> None:
                if change == appended:
                    place = HOME if place_of == "as it was" else world.catalog.places[HOME]
                    world.disk.write(f"{place}/theirs", (9,))

            world.disk.between = append
            world.killed_at(killed)
            done = world.disk.changes
            assert world.seen() - Counter((9,)) == BEFORE, (appended, killed)
            world.end()
            is_written = appended < done
            assert world.seen() == BEFORE + Counter((9,) * is_written), (appended, killed)
            assert world.is_home_and_clean(), (appended, killed)


def test_rows_appended_to_the_second_place_after_it_was_left_are_brought_home_once() -> None:
    world = World()
    world.compact()
    for name, row in (("theirs", 8), ("merged", 9)):
        # The second has the name of a file of ours, in another directory.
        world.disk.write(f"{world.exchange.temporary}/{name}.2", (row,))
        world.settle()
        world.settle()
        assert world.seen()[row] == 1
    world.end()
    assert world.seen() == BEFORE + Counter((8, 9))


def test_what_a_place_without_a_record_holds_is_left_to_whoever_reads_it() -> None:
    disk = Disk()
    disk.write(f"{EXCHANGES}/gone/place/theirs", (7,))
    assert exchanges(disk) == []
    assert disk.rows(f"{EXCHANGES}/gone/place") == Counter((7,))


def test_a_partition_that_changed_before_it_could_leave_stays_as_it_is() -> None:
    world = World()
    world.exchange = replace(world.exchange, merged=(*world.exchange.merged, StoredFile("gone", 1, 1)))
    assert not world.compact()
    assert world.seen() == BEFORE
    assert not world.disk.exists(EXCHANGES)


def test_the_grace_begins_when_the_catalog_has_been_told_however_long_that_takes() -> None:
    listed = [f"{HOME}/{name}" for name in SMALL]
    for killed in (*changes(), -1):
        world = World()
        seen_away_s: list[float] = []

        def take_time(change: int, world: World = world, seen_away_s: list[float] = seen_away_s) -> None:
            if world.catalog.places[HOME] != HOME:
                seen_away_s.append(world.time_s)
            if seen_away_s and world.time_s < seen_away_s[0] + GRACE_S:
                assert all(path in world.disk.content for path in listed)
            if change != WAITING:
                world.time_s += GRACE_S / 2

        world.disk.between = take_time
        world.killed_at(killed)
        world.settle()
        assert world.seen() == BEFORE


def test_a_move_that_a_store_made_by_half_is_completed() -> None:
    for killed in changes():
        for is_whole in (True, False):
            world = World()
            world.killed_at(killed)
            ready, target = f"{world.exchange.root}/ready/merged", f"{HOME}/merged"
            if world.catalog.places[HOME] == HOME or ready not in world.disk.content:
                continue
            # Such a store copies, and deletes the source after it.
            world.disk.write(target, (1, 2, 3, 3) if is_whole else (1,))
            world.disk.write(f"{world.exchange.temporary}/theirs", (9,))
            world.end()
            assert world.seen() == BEFORE + Counter((9,)), (killed, is_whole)
            assert world.is_home_and_clean()


def test_a_file_that_was_brought_home_by_half_is_there_once() -> None:
    for rows in ((9,), (9, 9, 9)):
        world = World()
        world.compact()
        world.disk.write(f"{world.exchange.temporary}/theirs", (9,))
        [theirs] = [file for file in world.disk.stored(world.exchange.temporary) if file.name == "theirs"]
        world.disk.write(f"{HOME}/{world.exchange.late(theirs)}", rows)
        world.end()
        assert world.seen() == BEFORE + Counter((9,))


def test_between_batches_late_rows_are_shown_and_who_is_due_comes_home() -> None:
    world = away()
    recovery = world.recovery()
    world.disk.write(f"{HOME}/late", (8,))
    recovery.advance_all()
    assert world.seen() == BEFORE + Counter((8,))
    assert world.catalog.places[HOME] == world.exchange.temporary
    world.time_s += GRACE_S
    recovery.advance_all()
    assert world.catalog.places[HOME] == HOME
    world.disk.write(f"{world.exchange.temporary}/theirs", (9,))
    recovery.advance_all()
    assert world.seen() == BEFORE + Counter((8, 9))


def test_one_partition_that_waits_for_a_person_does_not_keep_another_away() -> None:
    world = away()
    other = replace(world.exchange, id="w-0", directory="ds=b", merged=(), kept=(), made=("merged",), since_s=0.0)
    world.catalog.places["ds=b"], world.catalog.born["ds=b"] = other.temporary, 1
    world.disk.write(f"{other.temporary}/elsewhere", (7,))
    write_record(world.disk, other.root, replace(other, kept=(StoredFile("gone", 1, 1),), made=("elsewhere",)))
    with pytest.raises(PipelineError, match="gone is gone"):
        world.settle()
    world.time_s += GRACE_S
    with pytest.raises(PipelineError, match="gone is gone"):
        world.settle()
    assert world.catalog.places[HOME] == HOME
    assert world.seen() == BEFORE
