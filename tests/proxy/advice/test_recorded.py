"""Statements of a history that advice is given on, and the sentences where there are none."""

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.advice.recorded import HistoryMissingError, recorded
from proxy.cli import main
from proxy.history.record import Record, new_id
from proxy.history.store import Store

JOIN = "SELECT 1 FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 'may'"


def kept(directory: Path, *records: Record) -> Path:
    store = Store(directory, bytes_max=10_000_000)
    store.add(records)
    store.close()
    return directory


def record(text: str, fingerprint: str | None = "f1", database: str = "shop", age_s: float = 0.0) -> Record:
    at = time.time() - age_s
    return Record(
        id=new_id(at),
        started_at=at,
        user="anna",
        session="s",
        client="c",
        database=database,
        outcome="original",
        original=text,
        fingerprint=fingerprint,
        deciding_s=0.5,
        run_s=1.5,
    )


def of(directory: Path, *, database: str | None = None, statements_max: int = 10) -> list[tuple[object, ...]]:
    found = recorded(directory, time.time() - 3_600, database=database, statements_max=statements_max)
    return [(one.fingerprint, one.database, one.text, one.runs, one.seconds) for one in found.statements]


def test_runs_of_one_fingerprint_are_one_statement_by_its_newest_text(tmp_path: Path) -> None:
    history = kept(tmp_path, record(JOIN, age_s=60), record(JOIN.replace("may", "june")))
    assert of(history) == [("f1", "shop", JOIN.replace("may", "june"), 2, 4.0)]


def test_databases_are_apart_and_old_or_unparsed_statements_are_left(tmp_path: Path) -> None:
    history = kept(
        tmp_path,
        record(JOIN, database="shop"),
        record(JOIN, database="test"),
        record("SELECT 1", fingerprint=None),
        record(JOIN, "f2", age_s=7_200),
    )
    assert {row[1] for row in of(history)} == {"shop", "test"}
    assert [row[1] for row in of(history, database="test")] == ["test"]
    assert len(of(history, statements_max=1)) == 1


def test_a_history_without_literals_is_of_no_use(tmp_path: Path) -> None:
    history = kept(tmp_path, record(JOIN.replace("1", "?").replace("'may'", "?")))
    with pytest.raises(HistoryMissingError, match=r"history\.literals = true"):
        of(history)


def test_texts_without_literals_are_counted_beside_others(tmp_path: Path) -> None:
    history = kept(tmp_path, record(JOIN), record("SELECT ? FROM t", "f2"))
    found = recorded(history, 0, statements_max=10)
    assert (len(found.statements), found.unusable) == (1, 1)


def test_an_empty_history_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HistoryMissingError, match="run through the proxy first"):
        of(kept(tmp_path))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", "history.enabled=false"], "the history is switched off"),
        ([], "history.path is not set"),
        (["--history", "/no/such/place"], "there is no history in /no/such/place"),
    ],
)
def test_the_command_says_why_there_is_no_history(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(main, ["advise", *options])
    assert result.exit_code == 1
    assert sentence in result.output
