"""Secrets of statements stand in nothing that the proxy writes or shows, however they are spelled."""

import logging
from pathlib import Path

import msgspec
import pytest
from support.histories import history_in
from support.spelled_secrets import SECRET, SPELLINGS

from proxy.config.config import Config
from proxy.history.history import History
from proxy.history.queries import Filter, HistoryReader
from proxy.history.record import Record
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.session import Session
from proxy.session.shadow.checksum import Checksum
from proxy.session.shadow.compare import Comparison, Pair, ShadowVerdict
from proxy.session.shadow.differences import DifferenceLog
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.tracing.spans import span_of

OPENING = SessionOpening({"starpruner.mode": SECRET, "starpruner.x": SECRET}, "owner", "ann", "10.0.0.1")
DIFFERENT = Comparison(ShadowVerdict.DIFFERENT, "", Checksum(2, "7"), Checksum(1, "5"))


@pytest.fixture(params=[True, False], ids=["with literals", "without literals"])
def history(request: pytest.FixtureRequest, tmp_path: Path, ended: list[Record]) -> History:
    literals: bool = request.param
    one = history_in(tmp_path, literals=literals)
    return History(one.settings, tmp_path, on_end=ended.append)


@pytest.fixture
def ended() -> list[Record]:
    return []


def test_no_secret_is_written_or_shown(
    history: History, ended: list[Record], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    session = Session(SharedState.of(Config(), lambda: 0.0), OPENING, history)
    begun = [session.forward_unchanged(StatementClass(text)).on_outcome for text in SPELLINGS]
    written = [msgspec.json.encode(history.state())]
    for text, told in zip(SPELLINGS, begun, strict=True):
        told(Outcome(OutcomeKind.FAILED, 1.0, f"[PARSE_SYNTAX_ERROR] near '{SECRET}'\n== SQL ==\n{text}\n^^^"))
        written.append(msgspec.json.encode(session.last_statements()[0]))
    history.start()
    history.close()
    assert history.path is not None
    reader = HistoryReader(history.path)
    page = reader.statements(Filter(), len(SPELLINGS))
    assert len(page.statements) == len(ended) == len(SPELLINGS)
    written += [
        msgspec.json.encode(one) for one in (page, reader.digests(Filter()), reader.slowest(Filter(), 500))
    ]
    written += [msgspec.json.encode(reader.statement(line.id, None)) for line in page.statements]
    written += [repr(span_of(one, has_text=True, literals=history.literals)).encode() for one in ended]
    written += [file.read_bytes() for file in tmp_path.iterdir()]
    assert not [one for one in written if SECRET.encode() in one]
    assert SECRET not in caplog.text


def test_no_secret_is_in_the_file_of_differences(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    differences = DifferenceLog(tmp_path / "differences", 1_000_000)
    for text in SPELLINGS:
        differences.add(Pair(text, f"{text} "), DIFFERENT)
    lines = (tmp_path / "differences").read_text().splitlines()
    assert len(lines) == len(SPELLINGS)
    assert SECRET not in "".join(lines) + caplog.text + "".join(one.original for one in differences.newest())


def test_a_statement_that_runs_is_redacted_once(history: History) -> None:
    session = Session(SharedState.of(Config(), lambda: 0.0), OPENING, history)
    told = session.forward_unchanged(StatementClass(SPELLINGS[0])).on_outcome
    (first,), (second,) = history.state().running, history.state().running
    assert first is second
    told(Outcome(OutcomeKind.FINISHED, 1.0))
    assert history.state().running == []
