"""Statements of a history, made up."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proxy.config.serving import HistorySection
from proxy.history.history import History
from proxy.history.record import Record, new_id
from proxy.session.explain.view import CountView, ReducerView, ScanView, SplitsView
from proxy.session.timings import AskedQuery

PATIENCE_S = 60.0
SQL = "SELECT sum(s.amount) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 'may'"
REWRITTEN = (
    "SELECT sum(s.amount) FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-05-01') OR typeof(`ds`) <> 'string')) s"
    " JOIN dates d ON s.ds = d.ds WHERE d.month = 'may'"
)


def scan(
    table: str = "sales", kept: int | None = 124, skip: str | None = None, cause: str | None = None
) -> ScanView:
    """A scan of a table with 2,924 partitions."""
    reducer = ReducerView(
        ["ds"], "s.ds = d.ds", "keys", "SELECT d.ds FROM dates d WHERE d.month = 'may'", 31, None
    )
    return ScanView(
        table=table,
        alias="s",
        reducers=[reducer] if skip is None else [],
        predicate="(`ds` IN ('2026-05-01') OR typeof(`ds`) <> 'string')" if skip is None else None,
        exact=True if skip is None else None,
        partitions=CountView(2_924, kept) if skip is None else CountView(),
        files=CountView(),
        bytes=CountView(),
        splits=SplitsView(),
        would=None,
        iceberg=None,
        skip_reason=skip,
        skip_sentence=skip,
        cause=cause,
        is_fact=True,
    )


def record(**changes: Any) -> Record:
    """A statement of ann's that was rewritten and finished."""
    at = changes.pop("at", time.time())
    values: dict[str, Any] = {
        "id": new_id(at),
        "started_at": at,
        "user": "ann",
        "session": "s1",
        "client": "127.0.0.1",
        "database": "default",
        "outcome": "rewritten",
        "end": "finished",
        "original": SQL,
        "rewritten": REWRITTEN,
        "fingerprint": "f1",
        "rules": ["inner_join"],
        "scans": [scan()],
        "deciding_s": 0.09,
        "descriptions_s": 0.01,
        "key_queries_s": 0.072,
        "run_s": 1.5,
        "asked": [AskedQuery("descriptions", 0.002, 0.01), AskedQuery("keys", 0.015, 0.072)],
    }
    return Record(**{**values, **changes})


def left_alone(reason: str = "NO_EQUALITY", **changes: Any) -> Record:
    """A statement that stayed original."""
    values: dict[str, Any] = {
        "outcome": "original",
        "rewritten": None,
        "rules": [],
        "scans": [scan(skip=reason, cause="the condition `s.ds > d.ds` is no equality")],
        "fingerprint": "f2",
    }
    return record(**{**values, **changes})


def history_in(directory: Path | None, **settings: Any) -> History:
    """A history that is kept in a directory."""
    return History(HistorySection(path=str(directory or ""), **settings), directory)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for another thread."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.02)
