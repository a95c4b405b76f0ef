"""Statements that replace the rows of a partition on its journey, at every step."""

from collections import Counter
from contextlib import suppress

import pytest
from support.exchanged_world import BEFORE, GRACE_S, HOME, WAITING, KilledError, Replacement, World, away, changes

from pipeline.spark.errors import PipelineError


def test_a_statement_that_replaces_the_rows_at_home_has_the_last_word() -> None:
    # Until it comes home, which it does when nobody can still have read where it was.
    for replaced in (*range(6), WAITING):
        world = World()

        def overwrite(change: int, world: World = world, replaced: int = replaced) -> None:
            if change == replaced and not world.disk.exists(f"{HOME}/theirs"):
                for file in world.disk.stored(HOME):
                    del world.disk.content[f"{HOME}/{file.name}"]
                world.disk.write(f"{HOME}/theirs", (7,))

        world.disk.between = overwrite
        world.compact()
        world.end()
        assert world.disk.changes > replaced
        assert world.seen() == Counter((7,)), replaced
        assert world.is_home_and_clean()


@pytest.mark.parametrize("kind", ["dynamic", "static", "truncate"])
def test_a_statement_that_replaces_the_rows_at_any_moment_has_the_last_word_though_the_process_is_killed_at_any(
    kind: str,
) -> None:
    for written in changes():
        for killed in (*changes(), -1):
            world = World()
            statement = Replacement(world, kind, written, written)
            world.disk.between = statement.between
            world.killed_at(killed)
            if statement.place == world.catalog.places[HOME]:
                assert world.seen() == statement.rows, (written, killed)
            world.end()
            assert world.seen() == statement.rows, (written, killed)
            assert world.is_home_and_clean(), (written, killed)


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_a_statement_that_replaces_the_rows_and_takes_long_has_the_last_word_too(kind: str) -> None:
    everything = list(changes())
    for read in everything:
        for written in everything[read:]:
            world = World()
            statement = Replacement(world, kind, read, written)
            world.disk.between = statement.between
            world.compact()
            if statement.place == HOME and world.disk.changes:
                # It must not take longer than the grace: see the test above.
                continue
            world.end()
            assert world.seen() == statement.rows, (read, written)
            assert world.is_home_and_clean(), (read, written)


def test_rows_replaced_when_the_partition_was_home_again_are_seen_with_the_next_command_and_stay() -> None:
    world = World()
    world.compact()
    Replacement(world, "dynamic", 0, 0).write(world.exchange.temporary)
    assert world.seen() == BEFORE
    listed = [f"{HOME}/{file.name}" for file in world.disk.stored(HOME)]
    began_s = world.time_s
    world.disk.between = lambda _: None
    for change in changes():
        world.disk.kill_at = world.disk.changes + change
        with suppress(KilledError):
            world.settle()
        assert world.time_s - began_s >= GRACE_S or all(path in world.disk.content for path in listed)
        if change > 1:
            assert world.seen() == Counter((7,)), change
    world.end()
    assert world.seen() == Counter((7,))
    assert world.is_home_and_clean()


@pytest.mark.parametrize("written_at_home", ["before", "after"])
def test_rows_that_are_replaced_at_the_second_place_and_appended_at_home_are_not_guessed(
    written_at_home: str,
) -> None:
    world = away()
    if written_at_home == "before":
        world.disk.write(f"{HOME}/late", (8,))
    Replacement(world, "dynamic", 0, 0).write(world.exchange.temporary)
    if written_at_home == "after":
        world.disk.write(f"{HOME}/late", (8,))
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"another wrote late .* cannot know which rows"):
            world.settle()
        assert world.seen() == Counter((7,)), "nothing is carried beside the rows that replaced others"


def test_a_statement_that_is_about_to_replace_the_rows_is_waited_for() -> None:
    world = away()
    place = world.exchange.temporary
    for path in [path for path in world.disk.content if path.startswith(f"{place}/")]:
        del world.disk.content[path]
    with pytest.raises(PipelineError, match="is replacing rows there"):
        world.settle()
    world.disk.write(f"{place}/_temporary/0/theirs", (7,))
    with pytest.raises(PipelineError, match="is replacing rows there"):
        world.settle()
    world.disk.content.pop(f"{place}/_temporary/0/theirs")
    world.disk.write(f"{place}/theirs", (7,))
    world.end()
    assert world.seen() == Counter((7,))
    assert world.is_home_and_clean()


def test_rows_of_which_some_are_gone_are_not_guessed() -> None:
    world = away()
    del world.disk.content[f"{world.exchange.temporary}/large"]
    with pytest.raises(PipelineError, match=r"large is gone"):
        world.settle()
    assert world.disk.rows(HOME) == BEFORE


def test_rows_that_were_replaced_at_one_place_and_appended_at_the_other_are_not_guessed() -> None:
    world = away()
    del world.disk.content[f"{HOME}/one"]
    world.disk.write(f"{world.exchange.temporary}/theirs", (7,))
    with pytest.raises(PipelineError, match="cannot know which rows"):
        world.settle()
