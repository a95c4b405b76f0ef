"""What is written down of a partition that is exchanged, so that any process can go on with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pipeline.storage import Storage, StoredFile

PLACES = ".starpruner-compacted"

# The later one counts where a killed process left two.
STAGES = LEFT, COMING_HOME, AWAY = "left.json", "home.json", "away.json"


@dataclass(frozen=True, slots=True)
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
    # When the stage began.
    since_s: float = 0.0
    # Written by others while it was away, and copied home.
    carried: tuple[StoredFile, ...] = ()

    @property
    def root(self) -> str:
        """All that belongs to it."""
        return f"{PLACES}/{self.id}"

    @property
    def place(self) -> str:
        """Where readers find its rows while it is away."""
        return f"{self.root}/place"

    def at_home(self, name: str) -> str:
        """A file in its own directory."""
        return f"{self.directory}/{name}".removeprefix("/")

    def late(self, file: StoredFile) -> str:
        """What a file is called that was carried over: always the same, so that it is carried once."""
        return f"{self._late}{file.modified_ms}-{file.name}"

    def is_ours(self, file: StoredFile) -> bool:
        """Whether a file of the second place need not be carried home."""
        known = {*self.made, *(kept.name for kept in self.kept)}
        return file.name in known or file.name.startswith(self._late) or file in self.carried

    @property
    def _late(self) -> str:
        return f"late-{self.id}-"


def exchanges(storage: Storage) -> list[tuple[str, Exchange]]:
    """All partitions on their way, each with the stage it is in."""
    found = []
    for name in storage.names(PLACES):
        texts = ((stage, storage.read(f"{PLACES}/{name}/{stage}")) for stage in STAGES)
        known = next(((stage, _parsed(text)) for stage, text in texts if text is not None), None)
        # Without a record it is what a store left whose rename copies, or what a statement left that cleared the
        # whole table and wrote to this place since. Nobody can tell, so it stays.
        if known is not None:
            found.append(known)
    return found


def write_record(storage: Storage, path: str, exchange: Exchange) -> None:
    """Writes it down as a whole or not at all."""
    # Renamed when it is whole.
    storage.delete(f"{path}.new")
    storage.create(f"{path}.new", json.dumps(asdict(exchange), ensure_ascii=False))
    # Of a process that was killed here; the record of the stage before still stands.
    storage.delete(path)
    storage.move(f"{path}.new", path)


def _parsed(text: str) -> Exchange:
    fields = json.loads(text)
    for name in ("merged", "kept", "carried"):
        fields[name] = tuple(StoredFile(**file) for file in fields[name])
    return Exchange(**{**fields, "made": tuple(fields["made"])})
