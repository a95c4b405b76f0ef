"""The record on disk of a partition that is exchanged, so that any process can go on with it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from pipeline.tables.reserved_paths import EXCHANGES
from pipeline.tables.storage import Storage, StoredFile

# The stages in order: the catalog has the partition at the temporary location; its own directory is being filled;
# the catalog has it in its own directory again, and the temporary location is kept for a while; the rest is being
# deleted. The texts stand in records on disk.
IN_TEMPORARY, SWITCHING_BACK, SWITCHED_BACK, DELETING = "away", "coming home", "left", "over"

_RECORD = re.compile(r"record-(\d+)\.json")


@dataclass(frozen=True)
class PartitionExchange:
    """One partition's exchange; its own `directory` is relative to the table's, '' if it is the table's itself."""

    id: str
    directory: str
    # Files of the own directory whose rows are in the new files, and files that are to stay.
    merged: tuple[StoredFile, ...]
    kept: tuple[StoredFile, ...]
    # The new files.
    made: tuple[str, ...]
    # Time for statements to read the old files, and then to read or append at the temporary location.
    grace_s: float
    keep_s: float
    # When the partition was added to the catalog: one of the same name that was made later is another.
    born_ms: int = 0
    stage: str = IN_TEMPORARY
    # When the stage began; None until the catalog has certainly been changed.
    since_s: float | None = None
    # Files that others wrote to the temporary location, and that were copied into the own directory.
    carried: tuple[StoredFile, ...] = ()
    # The record with the highest number counts, where a killed process left two.
    number: int = 0

    @property
    def root(self) -> str:
        """The directory of all that belongs to this exchange."""
        return f"{EXCHANGES}/{self.id}"

    @property
    def temporary(self) -> str:
        """The temporary location, where readers find the rows until the switch back."""
        return f"{self.root}/place"

    @property
    def placed_names(self) -> frozenset[str]:
        """Names of files at the temporary location; only a statement that replaces rows deletes them."""
        return frozenset((*self.made, *(file.name for file in (*self.kept, *self.carried))))

    def own_path(self, name: str) -> str:
        """The path of a file in the own directory."""
        return f"{self.directory}/{name}".removeprefix("/")

    def late(self, file: StoredFile) -> str:
        """The name of a file's copy in the other directory: always the same, so that it is copied once."""
        return f"{self._late}{file.modified_ms}-{file.name}"

    def is_copy(self, name: str) -> bool:
        """Tells by its name whether a file is a copy from the other directory."""
        return name.startswith(self._late)

    def is_known_in_temporary(self, file: StoredFile) -> bool:
        """Tells whether a file at the temporary location need not be copied into the own directory."""
        return file.name in self._named_there or self.is_copy(file.name) or file in self.carried

    def is_known_in_directory(self, file: StoredFile) -> bool:
        """Tells whether a file of the own directory was there before the exchange, or was put there by it."""
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


def exchanges(storage: Storage) -> list[PartitionExchange]:
    """All exchanges of a table that are not over."""
    found = (_read(storage, f"{EXCHANGES}/{name}") for name in storage.names(EXCHANGES))
    # A directory without a record was left by a store whose rename copies, or by a statement that cleared the
    # whole table and wrote to this location since. Nobody can tell which, so it stays.
    return [exchange for exchange in found if exchange is not None]


def write_record(storage: Storage, root: str, exchange: PartitionExchange) -> None:
    """Writes the record of an exchange as a whole or not at all."""
    path = f"{root}/record-{exchange.number}.json"
    # The file is renamed when it is whole.
    storage.delete(f"{path}.new")
    storage.create(f"{path}.new", json.dumps(asdict(exchange), ensure_ascii=False))
    storage.move(f"{path}.new", path)


def write_next_record(storage: Storage, exchange: PartitionExchange) -> PartitionExchange:
    """Writes the next record of an exchange, and deletes the earlier ones."""
    following = replace(exchange, number=exchange.number + 1)
    write_record(storage, exchange.root, following)
    for number in _numbers(storage, exchange.root):
        if number < following.number:
            storage.delete(f"{exchange.root}/record-{number}.json")
    return following


def _read(storage: Storage, root: str) -> PartitionExchange | None:
    numbers = _numbers(storage, root)
    text = storage.read(f"{root}/record-{max(numbers)}.json") if numbers else None
    return None if text is None else _parsed(text)


def _numbers(storage: Storage, root: str) -> list[int]:
    return [int(match[1]) for name in storage.names(root) if (match := _RECORD.fullmatch(name))]


def _parsed(text: str) -> PartitionExchange:
    fields = json.loads(text)
    for name in ("merged", "kept", "carried"):
        fields[name] = tuple(StoredFile(**file) for file in fields[name])
    return PartitionExchange(**{**fields, "made": tuple(fields["made"])})
