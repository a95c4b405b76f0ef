"""A partition that is exchanged, with its disk, its catalog and its clock, all in memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from pipeline.swap.record import PartitionExchange
from pipeline.swap.recovery import Recovery
from pipeline.swap.swap import switch_to_temporary
from pipeline.tables.reserved_paths import EXCHANGES
from pipeline.tables.storage import Storage, StoredFile

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

    def location_of(self, directory: str) -> str | None:
        return self.places.get(directory)

    def born_ms(self, directory: str) -> int | None:
        return self.born[directory] if directory in self.places else None

    def partitions_at(self, path: str) -> list[str]:
        return [name for name, place in self.places.items() if f"{place}/".startswith(f"{path}/")]

    def set_location(self, directory: str, location: str) -> None:
        self.disk.change()
        self.places[directory] = location

    def owns_files(self) -> bool:
        return self.is_managed


class World:
    """A partition, its readers and writers, and commands that compact it."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.catalog = Catalog(self.disk)
        self.time_s = 0.0
        self.said: list[str] = []
        self.exchange = PartitionExchange(
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
        has_left = switch_to_temporary(self.disk, self.catalog, PREPARED, self.exchange, self.now)
        self.settle()
        return has_left

    def settle(self) -> None:
        self.recovery().finish_all()

    def recovery(self) -> Recovery:
        return Recovery(self.disk, self.catalog, self.said.append, self.now, self.pass_time)

    def now(self) -> float:
        """The time, which goes on with each look at it, as a real clock's does."""
        self.time_s += 1e-6
        return self.time_s

    def pass_time(self, seconds: float) -> None:
        self.time_s += seconds
        self.disk.between(WAITING)

    def seen(self) -> Counter[int]:
        place = self.catalog.location_of(HOME)
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
        return self.catalog.places == {HOME: HOME} and not self.disk.exists(EXCHANGES)


def away() -> World:
    """A partition at its second place, and nobody at work."""
    world = World()
    assert switch_to_temporary(world.disk, world.catalog, PREPARED, world.exchange, world.now)
    assert world.catalog.places[HOME] == world.exchange.temporary
    return world


def changes() -> Iterator[int]:
    """The number of each change that a whole journey makes."""
    world = World()
    world.compact()
    world.end()
    return iter(range(world.disk.changes + 1))


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
