"""Publication: new files are put into a table and old ones taken out, so that a kill at any moment can be undone.

Everything happens below `<table>/.starpruner`, which Spark does not read:

- `lock`: the process that works on the table; one at a time
- `<id>/data/..`: staged files, at the path that they will have in the table
- `<id>/removed/..`: files that were taken out, until the publication is complete
- `journal.json`: the moves that are being made; while it stands, the next process undoes them all
- `committed.json`: the same file renamed, once all moves are made: now the next process completes them

A failure before the first move leaves nothing that a reader sees. Between the first move and the last, which
takes a rename per file, readers see a part of the new files; so they do while Spark's own INSERT commits.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from pipeline.tables.reserved_paths import LOCK, WORK
from pipeline.tables.storage import Storage

JOURNAL = f"{WORK}/journal.json"
COMMITTED = f"{WORK}/committed.json"


@dataclass(frozen=True, slots=True)
class Publication:
    """The files to add and to remove; paths are relative to the table's directory."""

    id: str
    adds: tuple[str, ...]
    removes: tuple[str, ...]
    # Directories of partitions that are added to the catalog once their files are in place.
    partitions: tuple[str, ...]

    def staged(self, path: str) -> str:
        """The path of a file before it is published."""
        return f"{staging(self.id)}/{path}"

    def removed(self, path: str) -> str:
        """The path of a removed file until the publication is complete."""
        return f"{WORK}/{self.id}/removed/{path}"


# Adds partitions to the catalog, by their directories; a partition may be added again.
Register = Callable[[tuple[str, ...]], None]


def staging(publication_id: str) -> str:
    """The directory whose files mirror the table's."""
    return f"{WORK}/{publication_id}/data"


def publish(storage: Storage, publication: Publication, register: Register) -> Iterator[str]:
    """Publishes the staged files, one step each time it is asked to go on; names each step it made."""
    _write_journal(storage, publication)
    yield "journal"
    for directory in _directories(publication):
        # Partition by partition, and removes first: a reader in between finds too few rows, never a row twice.
        for path in (path for path in publication.removes if posixpath.dirname(path) == directory):
            storage.move(path, publication.removed(path))
            yield f"remove {path}"
        for path in (path for path in publication.adds if posixpath.dirname(path) == directory):
            storage.move(publication.staged(path), path)
            yield f"add {path}"
    storage.move(JOURNAL, COMMITTED)
    yield "commit"
    yield from _complete(storage, publication, register)


def recover(storage: Storage, register: Register) -> str | None:
    """Undoes or completes the publication that an earlier process left half-way; None if there was none.

    Returns "undone" or "completed". Only for the holder of the lock. It may be killed too: every step can be
    repeated.
    """
    done = None
    if (text := storage.read(COMMITTED)) is not None:
        for _ in _complete(storage, _parsed(text), register):
            pass
        done = "completed"
    elif (text := storage.read(JOURNAL)) is not None:
        _undo(storage, _parsed(text))
        done = "undone"
    for name in storage.names(WORK):
        if f"{WORK}/{name}" != LOCK:
            storage.delete(f"{WORK}/{name}")
    return done


def _complete(storage: Storage, publication: Publication, register: Register) -> Iterator[str]:
    register(publication.partitions)
    yield "register"
    storage.delete(f"{WORK}/{publication.id}")
    yield "clean"
    storage.delete(COMMITTED)


def _undo(storage: Storage, publication: Publication) -> None:
    for path in publication.adds:
        # The name is this publication's own: it cannot be another writer's file.
        storage.delete(path)
    for path in publication.removes:
        if storage.exists(publication.removed(path)):
            storage.move(publication.removed(path), path)
    for directory in publication.partitions:
        if not storage.names(directory):
            storage.delete(directory)
    storage.delete(JOURNAL)


def _directories(publication: Publication) -> list[str]:
    return sorted({posixpath.dirname(path) for path in (*publication.adds, *publication.removes)})


def _write_journal(storage: Storage, publication: Publication) -> None:
    # The journal is renamed when it is whole: half a journal could not be undone.
    unfinished = f"{JOURNAL}.new"
    storage.delete(unfinished)
    storage.create(unfinished, json.dumps(asdict(publication), ensure_ascii=False))
    storage.move(unfinished, JOURNAL)


def _parsed(text: str) -> Publication:
    fields = json.loads(text)
    return Publication(fields["id"], tuple(fields["adds"]), tuple(fields["removes"]), tuple(fields["partitions"]))
