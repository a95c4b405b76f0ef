"""The journey of a partition with readers, writers and kills at every step, on a file system in memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from pipeline.errors import PipelineError
from pipeline.exchange import go_away
from pipeline.exchange_record import PLACES, Exchange, exchanges, write_record
from pipeline.journeys import Journeys
from pipeline.storage import Storage, StoredFile

HOME = "ds=a"
PREPARED = ".starpruner/1/prepared"
GRACE_S, KEEP_S = 100.0, 1000.0
SMALL = {"one": (1,), "two": (2,), "three": (3, 3)}
# In place of the number of a change.
WAITING = -2
BEFORE = Counter((1, 2, 3, 3, 4, 5))


class KilledError(BaseException):
    """The process is gone: nothing that it would still do happens."""


class Disk(Storage):
    """Files in memory, by path, each with its rows and its time."""

    def __init__(self) -> None:
        self.content: dict[str, tuple[object, int]] = {}
        self.changes = 0
        self.clock = 0
        # What others do, and when; and when the process ends.
        self.between: Callable[[int], None] = lambda _: None
        self.kill_at = -1
        for name, rows in SMALL.items():
            self.write(f"{HOME}/{name}", rows)
        self.write(f"{HOME}/large", (4, 5))
        self.write(f"{PREPARED}/place/large", (4, 5))
        for directory in ("place", "ready"):
            self.write(f"{PREPARED}/{directory}/merged", (1, 2, 3, 3))

    def write(self, path: str, content: object) -> None:
        self.clock += 1
        self.content[path] = content, self.clock

    def rows(self, directory: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for file in self.stored(directory):
            rows = self.content[f"{directory}/{file.name}"][0]
            assert isinstance(rows, tuple)
            found.update(rows)
        return found

    def change(self) -> None:
        """Called before each change that the process makes."""
        if self.changes == self.kill_at:
            raise KilledError
        self.between(self.changes)
        self.changes += 1

    def absolute(self, path: str) -> str:
        return f"disk:/{path}"

    def exists(self, path: str) -> bool:
        return path in self.content or any(one.startswith(f"{path}/") for one in self.content)

    def names(self, path: str) -> list[str]:
        return sorted({one[len(path) + 1 :].split("/")[0] for one in self.content if one.startswith(f"{path}/")})

    def stored(self, path: str) -> list[StoredFile]:
        found = [(name, self.content.get(f"{path}/{name}")) for name in self.names(path) if name[0] not in "._"]
        return [StoredFile(name, len(str(known[0])), known[1]) for name, known in found if known is not None]

    def file_bytes(self, path: str) -> int | None:
        return len(str(self.content[path][0])) if path in self.content else None

    def move(self, source: str, target: str) -> None:
        self.change()
        assert target not in self.content, "the file system refuses to rename over a file"
        for path in [one for one in self.content if one == source or one.startswith(f"{source}/")]:
            self.content[target + path[len(source) :]] = self.content.pop(path)

    def copy(self, source: str, target: str) -> None:
        self.change()
        self.write(target, self.content[source][0])

    def delete(self, path: str) -> None:
        # A directory is not deleted in one step, and its record may well be the last to go.
        for one in sorted(self.content, reverse=True):
            if one == path or one.startswith(f"{path}/"):
                self.change()
                self.content.pop(one, None)

    def read(self, path: str) -> str | None:
        return str(self.content[path][0]) if path in self.content else None

    def create(self, path: str, text: str) -> bool:
        self.change()
        self.write(path, text)
        return True


class Catalog:
    """Where partitions are, and since when there are such."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.places: dict[str, str] = {HOME: HOME}
        self.born: dict[str, int] = {HOME: 1}
        self.is_managed = True

    def refresh(self) -> None:
        pass

    def place(self, directory: str) -> str | None:
        return self.places.get(directory)

    def born_ms(self, directory: str) -> int | None:
        return self.born[directory] if directory in self.places else None

    def readers(self, path: str) -> list[str]:
        return [name for name, place in self.places.items() if f"{place}/".startswith(f"{path}/")]

    def put(self, directory: str, place: str) -> None:
        self.disk.change()
        self.places[directory] = place

    def owns_files(self) -> bool:
        return self.is_managed


class World:
    """A partition, its readers and writers, and commands that compact it."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.catalog = Catalog(self.disk)
        self.time_s = 0.0
        self.said: list[str] = []
        self.exchange = Exchange(
            "x-0",
            HOME,
            tuple(file for file in self.disk.stored(HOME) if file.name in SMALL),
            tuple(file for file in self.disk.stored(HOME) if file.name not in SMALL),
            ("merged",),
            GRACE_S,
            KEEP_S,
            born_ms=1,
        )

    def compact(self) -> bool:
        has_left = go_away(self.disk, self.catalog, PREPARED, self.exchange, lambda: self.time_s)
        self.settle()
        return has_left

    def settle(self) -> None:
        self.journeys().settle()

    def journeys(self) -> Journeys:
        return Journeys(self.disk, self.catalog, self.said.append, lambda: self.time_s, self.pass_time)

    def pass_time(self, seconds: float) -> None:
        self.time_s += seconds
        self.disk.between(WAITING)

    def seen(self) -> Counter[int]:
        place = self.catalog.place(HOME)
        assert place is not None
        return self.disk.rows(place)

    def killed_at(self, change: int) -> None:
        """Compacts until the process is killed, if it gets so far; what comes then is another one."""
        self.disk.kill_at = change
        with suppress(KilledError):
            self.compact()
        self.disk.kill_at = -1

    def end(self) -> None:
        """The next command comes, and one when all is over."""
        self.disk.kill_at = -1
        self.disk.between = lambda _: None
        self.settle()
        self.time_s += KEEP_S
        self.settle()

    def is_home_and_clean(self) -> bool:
        return self.catalog.places == {HOME: HOME} and not self.disk.exists(PLACES)


def away() -> World:
    """A partition at its second place, and nobody at work."""
    world = World()
    assert go_away(world.disk, world.catalog, PREPARED, world.exchange, lambda: world.time_s)
    assert world.catalog.places[HOME] == world.exchange.place
    return world


def changes() -> Iterator[int]:
    """The number of each change that a whole journey makes."""
    world = World()
    world.compact()
    world.end()
    return iter(range(world.disk.changes + 1))


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
        world.disk.write(f"{world.exchange.place}/{name}.2", (row,))
        world.settle()
        world.settle()
        assert world.seen()[row] == 1
    world.end()
    assert world.seen() == BEFORE + Counter((8, 9))


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


class Replacement:
    """A statement that replaces all rows by a 7, as Spark's do: it reads the catalog, and writes later."""

    def __init__(self, world: World, kind: str, read_at: int, written_at: int) -> None:
        self.world, self.kind, self.read_at, self.written_at = world, kind, read_at, written_at
        self.place: str | None = None
        self.is_done = False

    def between(self, change: int) -> None:
        if change == self.read_at:
            self.place = self.world.catalog.places[HOME]
        if change == self.written_at and self.place is not None and not self.is_done:
            self.write(self.place)

    def write(self, place: str) -> None:
        self.is_done = True
        disk = self.world.disk
        # INSERT OVERWRITE of one partition by name clears its own directory too.
        for cleared in {place, HOME} if self.kind == "static" else {place}:
            for path in [path for path in disk.content if path.startswith(f"{cleared}/")]:
                del disk.content[path]
        # An empty directory, as far as this disk has any.
        disk.write(f"{place}/_SUCCESS", ())
        if self.kind != "truncate":
            disk.write(f"{place}/theirs", (7,))

    @property
    def rows(self) -> Counter[int]:
        return Counter((7,) * (self.kind != "truncate")) if self.is_done else BEFORE


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
    Replacement(world, "dynamic", 0, 0).write(world.exchange.place)
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
    Replacement(world, "dynamic", 0, 0).write(world.exchange.place)
    if written_at_home == "after":
        world.disk.write(f"{HOME}/late", (8,))
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"another wrote late .* not for a program to say"):
            world.settle()
        assert world.seen() == Counter((7,)), "nothing is carried beside the rows that replaced others"


def test_a_statement_that_is_about_to_replace_the_rows_is_waited_for() -> None:
    world = away()
    place = world.exchange.place
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
    del world.disk.content[f"{world.exchange.place}/large"]
    with pytest.raises(PipelineError, match=r"large is gone"):
        world.settle()
    assert world.disk.rows(HOME) == BEFORE


def test_what_a_place_without_a_record_holds_is_left_to_whoever_reads_it() -> None:
    disk = Disk()
    disk.write(f"{PLACES}/gone/place/theirs", (7,))
    assert exchanges(disk) == []
    assert disk.rows(f"{PLACES}/gone/place") == Counter((7,))


def test_rows_that_were_replaced_at_one_place_and_appended_at_the_other_are_not_guessed() -> None:
    world = away()
    del world.disk.content[f"{HOME}/one"]
    world.disk.write(f"{world.exchange.place}/theirs", (7,))
    with pytest.raises(PipelineError, match="not for a program to say"):
        world.settle()


def test_a_partition_that_changed_before_it_could_leave_stays_as_it_is() -> None:
    world = World()
    world.exchange = replace(world.exchange, merged=(*world.exchange.merged, StoredFile("gone", 1, 1)))
    assert not world.compact()
    assert world.seen() == BEFORE
    assert not world.disk.exists(PLACES)


@pytest.mark.parametrize("is_managed", [True, False])
def test_the_files_of_a_partition_that_is_dropped_on_its_way_go_with_it_or_stay_as_those_of_others_do(
    *, is_managed: bool
) -> None:
    for killed in changes():
        world = World()
        world.catalog.is_managed = is_managed
        world.killed_at(killed)
        if world.catalog.places[HOME] == HOME:
            continue
        del world.catalog.places[HOME]
        world.settle()
        assert world.disk.rows(HOME) == (Counter() if is_managed else BEFORE), killed
        assert not world.disk.exists(PLACES)


@pytest.mark.parametrize("is_managed", [True, False])
def test_a_second_place_that_a_partition_is_read_from_is_never_deleted(*, is_managed: bool) -> None:
    for killed in changes():
        world = World()
        world.catalog.is_managed = is_managed
        world.killed_at(killed)
        if world.catalog.places[HOME] == HOME:
            continue
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
    world.catalog.places["ds=b"] = f"{world.exchange.place}/below"
    world.end()
    assert world.disk.rows(world.exchange.place) == BEFORE
    del world.catalog.places["ds=b"]
    world.settle()
    assert world.is_home_and_clean()


def test_files_of_a_partition_that_was_dropped_and_made_anew_are_left_for_a_person_to_choose() -> None:
    for killed in changes():
        world = World()
        world.killed_at(killed)
        if world.catalog.places[HOME] == HOME:
            continue
        # DROP PARTITION deletes where the catalog says it is, and INSERT makes it anew in its own directory.
        for path in [path for path in world.disk.content if path.startswith(f"{world.exchange.place}/")]:
            del world.disk.content[path]
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
    assert not world.disk.exists(PLACES)


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
            world.disk.write(f"{world.exchange.place}/theirs", (9,))
            world.end()
            assert world.seen() == BEFORE + Counter((9,)), (killed, is_whole)
            assert world.is_home_and_clean()


def test_a_file_that_was_brought_home_by_half_is_there_once() -> None:
    for rows in ((9,), (9, 9, 9)):
        world = World()
        world.compact()
        world.disk.write(f"{world.exchange.place}/theirs", (9,))
        [theirs] = [file for file in world.disk.stored(world.exchange.place) if file.name == "theirs"]
        world.disk.write(f"{HOME}/{world.exchange.late(theirs)}", rows)
        world.end()
        assert world.seen() == BEFORE + Counter((9,))


def test_between_batches_late_rows_are_shown_and_who_is_due_comes_home() -> None:
    world = away()
    journeys = world.journeys()
    world.disk.write(f"{HOME}/late", (8,))
    journeys.tend()
    assert world.seen() == BEFORE + Counter((8,))
    assert world.catalog.places[HOME] == world.exchange.place
    world.time_s += GRACE_S
    journeys.tend()
    assert world.catalog.places[HOME] == HOME
    world.disk.write(f"{world.exchange.place}/theirs", (9,))
    journeys.tend()
    assert world.seen() == BEFORE + Counter((8, 9))


def test_one_partition_that_waits_for_a_person_does_not_keep_another_away() -> None:
    world = away()
    other = replace(world.exchange, id="w-0", directory="ds=b", merged=(), kept=(), made=("merged",), since_s=0.0)
    world.catalog.places["ds=b"], world.catalog.born["ds=b"] = other.place, 1
    world.disk.write(f"{other.place}/elsewhere", (7,))
    write_record(world.disk, other.root, replace(other, kept=(StoredFile("gone", 1, 1),), made=("elsewhere",)))
    with pytest.raises(PipelineError, match="gone is gone"):
        world.settle()
    world.time_s += GRACE_S
    with pytest.raises(PipelineError, match="gone is gone"):
        world.settle()
    assert world.catalog.places[HOME] == HOME
    assert world.seen() == BEFORE
