"""Spans of a statement as plain values, made of its record once it has ended.

Names of attributes are those of OpenTelemetry's semantic conventions for databases, as far as these have one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.config.address import address
from proxy.history.record import Record, counted, reasons_of, tables_of
from proxy.history.redaction import kept_text
from rewriter.sql.classify import COMMENT_OR_SPACE

Attributes: TypeAlias = Mapping[str, str | int | float | tuple[str, ...]]

# The conventions list no value for Spark; for such a system they ask for a name of one's own.
SYSTEM: Final = "spark"
# The length that the conventions recommend for a summary.
_SUMMARY_CHARS_MAX: Final = 255
_FAILED: Final = frozenset({"failed", "failed_twice", "lost"})
_FELL_BACK: Final = frozenset({"recovered", "overtaken", "failed_twice"})
# A comment as SQLCommenter writes it, which instruments SQLAlchemy and Django: the client's own span.
_TRACE_PARENT: Final = re.compile(
    r"/\*[^*]*\btraceparent='00-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})'"
)
_FIRST_WORD: Final = re.compile(rf"(?:{COMMENT_OR_SPACE}|\()*+([A-Za-z]{{1,20}})", re.DOTALL)


@dataclass(frozen=True)
class SpanOfStatement:
    """A span with the spans inside it; times are seconds since 1970."""

    name: str
    start: float
    end: float
    attributes: Attributes = field(default_factory=dict)
    # A name of OutcomeKind in lower case; empty where nothing failed.
    error: str = ""
    # "server" for a client's statement, "client" for a call to the backend, "internal" for anything else.
    kind: str = "client"
    children: tuple[SpanOfStatement, ...] = ()


@dataclass(frozen=True)
class TraceParent:
    """The client's span, and whether its trace is recorded."""

    trace_id: int
    span_id: int
    is_sampled: bool


def trace_id_of(statement_id: str) -> int:
    """The id of a statement's trace: the statement's id, and its last eight digits again, which are random.

    >>> f"{trace_id_of('0000000005dc0001a1b2c3d4'):032x}"
    '0000000005dc0001a1b2c3d4a1b2c3d4'
    """
    return int(statement_id + statement_id[-8:], 16)


def trace_parent_of(record: Record) -> TraceParent | None:
    """The client's span that the statement's text names in a comment."""
    found = _TRACE_PARENT.search(record.original)
    if found is None or not (int(found["trace"], 16) and int(found["span"], 16)):
        return None
    return TraceParent(int(found["trace"], 16), int(found["span"], 16), bool(int(found["flags"], 16) & 1))


def span_of(record: Record, *, has_text: bool, literals: bool) -> SpanOfStatement:
    """The span of a statement that has ended; `has_text` adds the text, without `literals` where they are off."""
    sent_at = record.started_at + record.deciding_s
    run_end = sent_at + (record.run_s or 0.0)
    database = _database(record)
    children = []
    if record.deciding_s:
        children.append(_deciding(record, sent_at, database))
    if record.run_s is not None:
        is_wrong = record.fallback_s is not None or record.end in _FELL_BACK | _FAILED
        error = record.end if is_wrong else ""
        children.append(SpanOfStatement("run", sent_at, run_end, {**database, **_operation(record, 0)}, error))
    if record.fallback_s is not None:
        error = record.end if record.end in _FAILED else ""
        end = run_end + record.fallback_s
        children.append(SpanOfStatement("fallback", run_end, end, {**database, **_operation(record, 1)}, error))
    text = {"db.query.text": kept_text(record.original, literals=literals)} if has_text else {}
    summary = _summary(record)
    return SpanOfStatement(
        summary,
        record.started_at,
        children[-1].end if children else sent_at,
        {**database, **_about(record), **text, "db.query.summary": summary},
        record.end if record.end in _FAILED else "",
        kind="server",
        children=tuple(children),
    )


def _deciding(record: Record, sent_at: float, database: Attributes) -> SpanOfStatement:
    names = {"keys": "key query", "descriptions": "description"}
    asked = tuple(
        SpanOfStatement(names[one.purpose], at, at + one.seconds, database)
        for one in record.asked
        for at in [record.started_at + one.after_s]
    )
    seconds = {
        "starpruner.descriptions.duration_s": record.descriptions_s,
        "starpruner.key_queries.duration_s": record.key_queries_s,
    }
    return SpanOfStatement("deciding", record.started_at, sent_at, seconds, kind="internal", children=asked)


def _database(record: Record) -> dict[str, str | int]:
    found: dict[str, str | int] = {"db.system.name": SYSTEM, "db.namespace": record.database}
    if not record.backend:
        return found
    backend = address(record.backend)
    return {**found, "server.address": backend.host, "server.port": backend.port}


def _about(record: Record) -> Attributes:
    """The statement itself. Values that are not known are left out."""
    about: dict[str, str | int | float | tuple[str, ...] | None] = {
        "db.operation.name": _first_word(record),
        "user.name": record.user,
        # "HTTP" stands for a client over HTTP whose address is not known.
        "client.address": None if record.client == "HTTP" else record.client,
        "starpruner.statement.id": record.id,
        "starpruner.session.id": record.session,
        "starpruner.spark.ids": tuple(record.spark_ids),
        "starpruner.outcome": record.outcome,
        "starpruner.sent": "original" if record.rewritten is None else "rewritten",
        "starpruner.fingerprint": record.fingerprint,
        "starpruner.rules": tuple(record.rules),
        "starpruner.reasons": tuple(sorted({reason for reason, _ in reasons_of(record)})),
    }
    for part in ("partitions", "files", "bytes") if record.rewritten is not None else ():
        count = counted(record, part)
        about |= {f"starpruner.{part}.total": count.total, f"starpruner.{part}.kept": count.kept}
    return {name: value for name, value in about.items() if value not in {None, "", ()}}


def _operation(record: Record, place: int) -> Attributes:
    spark_ids = record.spark_ids[place : place + 1]
    return {"starpruner.spark.id": spark_ids[0]} if spark_ids else {}


def _first_word(record: Record) -> str:
    found = _FIRST_WORD.match(record.original)
    return "" if found is None else found[1].upper()


def _summary(record: Record) -> str:
    """The kind of the statement and its tables, by which alike statements have one name."""
    words = [_first_word(record), *sorted(tables_of(record))]
    summary = " ".join(filter(None, words)) or SYSTEM
    return summary[:_SUMMARY_CHARS_MAX]
