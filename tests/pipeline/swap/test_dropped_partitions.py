"""Partitions that are dropped, renamed or made anew on their journey, at every step."""

from collections import Counter
from collections.abc import Iterator

import pytest
from support.exchanged_world import BEFORE, HOME, KEEP_S, WAITING, World, away, changes

from pipeline.spark.errors import PipelineError
from pipeline.tables.reserved_paths import EXCHANGES


def killed_away(*, is_managed: bool) -> Iterator[tuple[int, World]]:
    """Worlds whose partition is at its second place, each with the change before which the command was killed."""
    return killed_where(is_managed=is_managed, is_home=False)


def killed_where(*, is_managed: bool, is_home: bool) -> Iterator[tuple[int, World]]:
    """Worlds whose partition is, to the catalog, in its own directory or at its second place."""
    for killed in changes():
        world = World()
        world.catalog.is_managed = is_managed
        world.killed_at(killed)
        if (world.catalog.places[HOME] == HOME) is is_home:
            yield killed, world


@pytest.mark.parametrize("is_managed", [True, False])
def test_the_files_of_a_partition_that_is_dropped_on_its_way_go_with_it_or_stay_as_those_of_others_do(
    *, is_managed: bool
) -> None:
    for killed, world in killed_away(is_managed=is_managed):
        del world.catalog.places[HOME]
        world.settle()
        assert world.disk.rows(HOME) == (Counter() if is_managed else BEFORE), killed
        assert not world.disk.exists(EXCHANGES)


@pytest.mark.parametrize("is_managed", [True, False])
def test_a_second_place_that_a_partition_is_read_from_is_never_deleted(*, is_managed: bool) -> None:
    for killed, world in killed_away(is_managed=is_managed):
        # What RENAME of an external partition comes to.
        world.catalog.places = {"ds=b": world.catalog.places[HOME]}
        world.catalog.born["ds=b"] = 1
        for _ in range(2):
            world.settle()
            world.time_s += KEEP_S
        assert world.disk.rows(world.catalog.places["ds=b"]) == BEFORE, killed
        assert "the partition ds=b is read from there" in world.said[-1]


def test_a_second_place_that_has_become_another_partitions_is_kept_after_its_time() -> None:
    world = World()
    world.compact()
    world.catalog.places["ds=b"] = f"{world.exchange.temporary}/below"
    world.end()
    assert world.disk.rows(world.exchange.temporary) == BEFORE
    del world.catalog.places["ds=b"]
    world.settle()
    assert world.is_home_and_clean()


def test_files_of_a_partition_that_was_dropped_and_made_anew_are_left_for_a_person_to_choose() -> None:
    for _, world in killed_away(is_managed=True):
        # DROP PARTITION deletes where the catalog says it is, and INSERT makes it anew in its own directory.
        world.disk.delete(world.exchange.temporary)
        world.catalog.places, world.catalog.born = {HOME: HOME}, {HOME: 2}
        world.disk.write(f"{HOME}/theirs", (7,))
        before = dict(world.disk.content)
        with pytest.raises(PipelineError, match="was dropped and made anew"):
            world.settle()
        assert world.disk.content == before
        # As the message says.
        for file in world.disk.stored(HOME):
            if file.name != "theirs":
                del world.disk.content[f"{HOME}/{file.name}"]
        world.disk.delete(world.exchange.root)
        world.end()
        assert world.seen() == Counter((7,))


def test_a_partition_that_is_made_anew_after_all_its_files_went_with_the_old_one_has_its_rows_alone() -> None:
    kills = 0
    for killed, world in killed_where(is_managed=True, is_home=True):
        # So DROP PARTITION deletes there, and nothing at the second place.
        world.disk.delete(HOME)
        world.catalog.born = {HOME: 2}
        world.disk.write(f"{HOME}/theirs", (7,))
        world.end()
        assert world.seen() == Counter((7,)), killed
        assert world.is_home_and_clean()
        kills += 1
    assert kills


def test_a_partition_that_is_made_anew_when_it_is_home_is_no_concern_of_ours() -> None:
    world = World()
    world.compact()
    world.catalog.born[HOME] = 2
    world.end()
    assert world.seen() == BEFORE
    assert world.is_home_and_clean()


def test_a_partition_that_is_dropped_as_it_is_waited_for_goes_at_once() -> None:
    world = away()

    def drop(change: int) -> None:
        if change == WAITING:
            world.catalog.places.clear()

    world.disk.between = drop
    world.settle()
    assert not world.disk.rows(HOME)
    assert not world.disk.exists(EXCHANGES)
