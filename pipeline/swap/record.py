"""What is written down of a partition that is exchanged, so that any process can go on with it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from pipeline.tables.reserved_paths import PLACES
from pipeline.tables.storage import Storage, StoredFile

# At the second place; on its way home, where files come and go; home again, with the second place kept for a
# while; and done, so that what is left can be deleted.
STAGES = AWAY, COMING_HOME, LEFT, OVER = "away", "coming home", "left", "over"

_RECORD = re.compile(r"record-(\d+)\.json")


@dataclass(frozen=True)
class Exchange:
    """One partition on its way; its own directory is relative to the table's, and '' is that directory itself."""

    id: str
    directory: str
    # Files of its own directory whose rows are in the new ones, and those that are to stay.
    merged: tuple[StoredFile, ...]
    kept: tuple[StoredFile, ...]
    # The new files.
    made: tuple[str, ...]
    # How long statements may read the old files, and then what was seen while the partition was away.
    grace_s: float
    keep_s: float
    # When the catalog got the partition: one of the same name that was made later is another.
    born_ms: int = 0
    stage: str = AWAY
    # When the stage began; None until the catalog has certainly been told of it.
    since_s: float | None = None
    # Written by others while it was away, and copied home.
    carried: tuple[StoredFile, ...] = ()
    # The record with the highest number counts, where a killed process left two.
    number: int = 0

    @property
    def root(self) -> str:
        """All that belongs to it."""
        return f"{PLACES}/{self.id}"

    @property
    def place(self) -> str:
        """Where readers find its rows while it is away."""
        return f"{self.root}/place"

    @property
    def placed(self) -> frozenset[str]:
        """Files of the second place that only a statement can have deleted that replaced its rows."""
        return frozenset((*self.made, *(file.name for file in (*self.kept, *self.carried))))

    def at_home(self, name: str) -> str:
        """A file in its own directory."""
        return f"{self.directory}/{name}".removeprefix("/")

    def late(self, file: StoredFile) -> str:
        """What a file is called that was carried over: always the same, so that it is carried once."""
        return f"{self._late}{file.modified_ms}-{file.name}"

    def is_copy(self, name: str) -> bool:
        """Whether a file was carried over, from either side."""
        return name.startswith(self._late)

    def is_ours(self, file: StoredFile) -> bool:
        """Whether a file of the second place need not be carried home."""
        return file.name in self._named_there or self.is_copy(file.name) or file in self.carried

    def is_ours_at_home(self, file: StoredFile) -> bool:
        """Whether a file of its own directory is one that was there when it left, or that came home with it."""
        return file in self._was_home or file.name in self.made or self.is_copy(file.name)

    # Sets, since a partition may have thousands of files, and each of them is asked about.
    @cached_property
    def _was_home(self) -> frozenset[StoredFile]:
        return frozenset((*self.merged, *self.kept))

    @cached_property
    def _named_there(self) -> frozenset[str]:
        return frozenset((*self.made, *(file.name for file in self.kept)))

    @property
    def _late(self) -> str:
        return f"late-{self.id}-"


def exchanges(storage: Storage) -> list[Exchange]:
    """All partitions on their way."""
    found = (_read(storage, f"{PLACES}/{name}") for name in storage.names(PLACES))
    # Without a record it is what a store left whose rename copies, or what a statement left that cleared the
    # whole table and wrote to this place since. Nobody can tell, so it stays.
    return [exchange for exchange in found if exchange is not None]


def write_record(storage: Storage, root: str, exchange: Exchange) -> None:
    """Writes it down as a whole or not at all."""
    path = f"{root}/record-{exchange.number}.json"
    # Renamed when it is whole.
    storage.delete(f"{path}.new")
    storage.create(f"{path}.new", json.dumps(asdict(exchange), ensure_ascii=False))
    storage.move(f"{path}.new", path)


def advance(storage: Storage, exchange: Exchange) -> Exchange:
    """Writes down what it is now, and forgets what it was."""
    following = replace(exchange, number=exchange.number + 1)
    write_record(storage, exchange.root, following)
    for number in _numbers(storage, exchange.root):
        if number < following.number:
            storage.delete(f"{exchange.root}/record-{number}.json")
    return following


def _read(storage: Storage, root: str) -> Exchange | None:
    numbers = _numbers(storage, root)
    text = storage.read(f"{root}/record-{max(numbers)}.json") if numbers else None
    return None if text is None else _parsed(text)


def _numbers(storage: Storage, root: str) -> list[int]:
    return [int(match[1]) for name in storage.names(root) if (match := _RECORD.fullmatch(name))]


def _parsed(text: str) -> Exchange:
    fields = json.loads(text)
    for name in ("merged", "kept", "carried"):
        fields[name] = tuple(StoredFile(**file) for file in fields[name])
    return Exchange(**{**fields, "made": tuple(fields["made"])})
