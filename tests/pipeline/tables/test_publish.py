import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.tables.lock import locked
from pipeline.tables.publish import Publication, publish, recover
from pipeline.tables.reserved_paths import LOCK
from pipeline.tables.storage import Storage

NEW_DIRECTORY = "ds=%25 b%2Fé"
PUBLICATION = Publication(
    "0001", ("ds=a/new-0001", "ds=a/more-0001", f"{NEW_DIRECTORY}/new-0001"), ("ds=a/old",), (NEW_DIRECTORY,)
)
BEFORE = {"ds=a/old": "old", "ds=a/stays": "stays"}
AFTER = {
    "ds=a/stays": "stays",
    "ds=a/new-0001": "new",
    "ds=a/more-0001": "new",
    f"{NEW_DIRECTORY}/new-0001": "new",
}


class Table:
    """Plain files in place of a table, and a list of the partitions that its catalog was told of."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.directory = directory / "a table"
        self.registered: list[str] = []
        for path, text in BEFORE.items():
            self.write(path, text)
        for path in PUBLICATION.adds:
            self.write(PUBLICATION.staged(path), "new")
        self.storage = Storage(spark, self.directory.as_uri())

    def write(self, path: str, text: str) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_text(text)

    def register(self, directories: tuple[str, ...]) -> None:
        self.registered += directories

    def steps(self) -> Iterator[str]:
        return publish(self.storage, PUBLICATION, self.register)

    def files(self) -> dict[str, str]:
        return {path: (self.directory / path).read_text() for path in self.storage.files_below("")}

    def left_over(self) -> list[str]:
        return [name for name in self.storage.names(".starpruner") if not name.startswith(".")]


@pytest.fixture
def table(local_spark: SparkSession, tmp_path: Path) -> Table:
    return Table(local_spark, tmp_path)


def test_a_publication_brings_new_files_and_takes_old_ones_out(table: Table) -> None:
    steps = list(table.steps())
    assert steps.index("remove ds=a/old") < steps.index("add ds=a/new-0001") < steps.index("commit")
    assert table.files() == AFTER
    assert table.registered == [NEW_DIRECTORY]
    assert not table.left_over()


@pytest.mark.parametrize("made", range(9))
def test_a_publication_killed_after_any_step_is_undone_or_completed_by_the_next(table: Table, made: int) -> None:
    steps = table.steps()
    names = [next(steps) for _ in range(made)]
    # A generator that is left alone does nothing more, as a killed process.
    done = recover(table.storage, table.register)
    if "commit" in names:
        assert (done, table.files()) == ("completed", AFTER)
        assert NEW_DIRECTORY in table.registered
    else:
        assert (done, table.files()) == ("undone" if names else None, BEFORE)
        assert not table.registered
        assert not (table.directory / NEW_DIRECTORY).exists()
    assert not table.left_over()


def test_undoing_can_itself_be_killed_and_made_again(table: Table) -> None:
    steps = table.steps()
    while next(steps) != "add ds=a/new-0001":
        pass
    # As far as an undoing that was killed had come.
    table.storage.delete("ds=a/new-0001")
    table.storage.move(PUBLICATION.removed("ds=a/old"), "ds=a/old")
    assert recover(table.storage, table.register) == "undone"
    assert table.files() == BEFORE


def test_undoing_leaves_alone_what_others_wrote_meanwhile(table: Table) -> None:
    steps = table.steps()
    while next(steps) != f"add {NEW_DIRECTORY}/new-0001":
        pass
    table.write(f"{NEW_DIRECTORY}/theirs", "theirs")
    assert recover(table.storage, table.register) == "undone"
    assert table.files() == {**BEFORE, f"{NEW_DIRECTORY}/theirs": "theirs"}


def test_the_lock_keeps_out_a_second_process_and_gives_way_to_none_of_another_machine(table: Table) -> None:
    with locked(table.storage):
        assert table.storage.exists(LOCK)
    assert not table.storage.exists(LOCK)
    for holder in ('{"host": "elsewhere", "pid": 1}', "", f'{{"host": "{_host()}", "pid": 1}}'):
        table.write(LOCK, holder)
        with pytest.raises(PipelineError, match=r"delete .*lock"), locked(table.storage):
            pass


def test_the_lock_of_a_process_that_is_gone_is_taken_over(table: Table) -> None:
    table.write(LOCK, f'{{"host": "{_host()}", "pid": {_gone_pid()}}}')
    with locked(table.storage, lambda _: None):
        assert table.storage.exists(LOCK)
    assert not table.storage.exists(LOCK)


def test_of_two_processes_that_find_a_holder_gone_one_takes_over_and_the_other_leaves_its_lock(
    table: Table,
) -> None:
    gone = f'{{"host": "{_host()}", "pid": {_gone_pid()}}}'
    table.write(LOCK, gone)

    def another_takes_over(_: float) -> None:
        take(table.storage)

    with pytest.raises(PipelineError, match="another process took"), locked(table.storage, another_takes_over):
        pass
    assert table.storage.read(LOCK) == "theirs"


def test_a_lock_that_another_process_put_in_place_of_ours_is_not_deleted(table: Table) -> None:
    with locked(table.storage):
        take(table.storage)
    assert table.storage.read(LOCK) == "theirs"


def take(storage: Storage) -> None:
    """As another process does that takes the holder for gone; Hadoop keeps a checksum beside each file."""
    storage.delete(LOCK)
    assert storage.create(LOCK, "theirs")


def _host() -> str:
    return platform.node()


def _gone_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid
