"""Lessons as rows of a table that all replicas share: what is quarantined, and the runs of statements.

    1Q f|r <name>      a fingerprint or a rule that is quarantined, or that an administrator has released
    1R <name>          the runs of the statements of a fingerprint, of one user and state of a session

They stand beside the partition lists (proxy/session/layout/shared_rows.py), and `1` is the same version. A name is
that of a rule, or a digest that reveals nothing of the statement (`StatementKey.name`). In a row, times are times
of day. In this process, most are times of the own clock, which is never set. No row is believed unchecked: a value
has a checksum and its own name, and numbers are those that a replica can have written.
"""

from __future__ import annotations

import math
import re
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from proxy.session.feedback.cost_model import RUNS_KEPT_MAX, RunRecord
from proxy.session.feedback.quarantine_list import LEASE_S, Blamed, Cause, QuarantineKind, SharedEntry
from rewriter import Rule
from rewriter.partitions.byte_ranges import ByteRange

T = TypeVar("T")

_QUARANTINE: Final = b"1Q"
_RECORDS: Final = b"1R"
QUARANTINE_COLUMN: Final = b"l:q"
RECORD_COLUMN: Final = b"l:r"
ALL_RULES: Final = ByteRange.of_prefix(_QUARANTINE + b"r")
ALL_FINGERPRINTS: Final = ByteRange.of_prefix(_QUARANTINE + b"f")
ALL_RECORDS: Final = ByteRange.of_prefix(_RECORDS)

# Runs of a day ago still tell something of a dashboard that is opened each morning.
RECORD_TTL_S: Final = 86_400.0
_CHECKSUM_BYTES: Final = 16
# No statement that is worth a record takes longer.
_RUN_MAX_S: Final = 86_400.0
# A record has some hundred bytes and the names of its facts.
_VALUE_BYTES_MAX: Final = 65_536
_NAME_CHARS_MAX: Final = 200
_OWNER: Final = re.compile(r"[0-9a-f]*")
_NAME: Final = re.compile(r"[0-9A-Za-z_]+(?:@[0-9a-f]+)?")
# Clocks of replicas differ. An entry of one whose clock is ahead by more is not believed, but for a wrong answer.
_CLOCK_SKEW_S: Final = 60.0


# Rows have codes of causes, since their sentences may be worded anew.
_CAUSES: Final = {"f": Cause.FAILED, "m": Cause.MERGE_FAILED, "d": Cause.DIFFERENT}
_CODES: Final = {cause: code for code, cause in _CAUSES.items()}


class _Quarantined(msgspec.Struct, frozen=True):
    kind: QuarantineKind
    name: str
    cause: str
    is_release: bool
    at: float
    until: float
    period_s: float
    rules: tuple[str, ...]
    fingerprint: str
    # Earlier versions tell none.
    owner: str = ""


class _Runs(msgspec.Struct, frozen=True):
    name: str
    planned_at: float
    facts: tuple[str, ...]
    listing_s: float
    reading_s: float
    is_counted: bool
    rewritten: tuple[float, ...]
    overheads: tuple[float, ...]
    originals: tuple[float, ...]
    cold_s: float | None
    rewritten_count: int
    original_count: int
    is_left: bool | None
    gained_s: float

    @property
    def is_sound(self) -> bool:
        """True if a replica can have written it."""
        seconds = (*self.rewritten, *self.overheads, *self.originals, self.cold_s or 0.0)
        seconds = (*seconds, self.listing_s, self.reading_s, self.rewritten_count, self.original_count)
        return (
            len(self.rewritten) == len(self.overheads)
            and max(len(self.rewritten), len(self.originals)) <= RUNS_KEPT_MAX
            and all(each >= 0.0 for each in seconds)
            and all(each <= _RUN_MAX_S or math.isinf(each) for each in self.rewritten)
            and max((*self.overheads, *self.originals, self.cold_s or 0.0)) <= _RUN_MAX_S
            and math.isfinite(self.gained_s)
        )


def quarantine_row(entry: SharedEntry) -> bytes:
    """The row of an entry."""
    return _QUARANTINE + entry.kind.value[0].encode() + entry.name.encode()


def quarantine_value(entry: SharedEntry, now: float, offset_s: float) -> bytes:
    """The value of an entry. The time of day is the own clock plus the offset."""
    return _encoded(
        _Quarantined(
            kind=entry.kind,
            name=entry.name,
            cause=_CODES[entry.cause],
            is_release=entry.is_release,
            at=entry.at,
            until=min(entry.until, now + LEASE_S) + offset_s,
            period_s=0.0 if math.isinf(entry.period_s) else entry.period_s,
            rules=tuple(sorted(rule.value for rule in entry.blamed.rules)),
            fingerprint=entry.blamed.fingerprint,
            owner=entry.blamed.owner,
        )
    )


def ttl_s(entry: SharedEntry, now: float) -> float:
    """The time that others have to know an entry."""
    return LEASE_S if entry.is_release else max(1.0, min(entry.until - now, LEASE_S))


def read_quarantine(row: bytes, value: bytes, now: float, offset_s: float) -> SharedEntry | None:
    """The entry in a cell, or None where it is not one that a replica writes."""
    told = _decoded(value, _Quarantined)
    # Names come into logs and pages.
    if told is None or len(told.name) > _NAME_CHARS_MAX or _NAME.fullmatch(told.name) is None:
        return None
    if len(told.owner) > _NAME_CHARS_MAX or _OWNER.fullmatch(told.owner) is None:
        return None
    cause, at = _CAUSES.get(told.cause), told.at
    if cause is None or not (math.isfinite(at) and math.isfinite(told.until)):
        return None
    if at > now + offset_s + _CLOCK_SKEW_S:
        if told.is_release or cause is not Cause.DIFFERENT:
            return None
        # A wrong answer counts by any clock.
        at = now + offset_s
    rules = frozenset(rule for rule in Rule if rule.value in told.rules)
    entry = SharedEntry(
        kind=told.kind,
        name=told.name,
        cause=cause,
        at=at,
        until=told.until - offset_s,
        period_s=max(0.0, told.period_s),
        blamed=Blamed(rules, told.fingerprint, told.owner),
        is_release=told.is_release,
    )
    return entry if quarantine_row(entry) == row else None


def record_row(name: str) -> bytes:
    """The row of the runs of a fingerprint."""
    return _RECORDS + name.encode()


def record_value(name: str, record: RunRecord, offset_s: float) -> bytes:
    """The value of the runs of a fingerprint."""
    return _encoded(
        _Runs(
            name=name,
            planned_at=record.planned_at + offset_s,
            facts=tuple(sorted(record.facts)),
            listing_s=record.listing_s,
            reading_s=record.reading_s,
            is_counted=record.is_counted,
            rewritten=record.rewritten,
            overheads=record.overheads,
            originals=record.originals,
            cold_s=record.cold_s,
            rewritten_count=record.rewritten_count,
            original_count=record.original_count,
            is_left=record.is_left,
            gained_s=record.gained_s,
        )
    )


def read_record(row: bytes, value: bytes, now: float, offset_s: float) -> tuple[str, RunRecord] | None:
    """The name and the runs in a cell, or None where they are not those that a replica writes."""
    runs = _decoded(value, _Runs)
    if runs is None or not runs.is_sound or record_row(runs.name) != row or math.isnan(runs.planned_at):
        return None
    return runs.name, RunRecord(
        facts=frozenset(runs.facts),
        listing_s=runs.listing_s,
        reading_s=runs.reading_s,
        is_counted=runs.is_counted,
        rewritten=runs.rewritten,
        overheads=runs.overheads,
        originals=runs.originals,
        cold_s=runs.cold_s,
        rewritten_count=runs.rewritten_count,
        original_count=runs.original_count,
        is_left=runs.is_left,
        gained_s=runs.gained_s,
        # A clock that is ahead would put a trial off.
        planned_at=min(runs.planned_at - offset_s, now),
    )


def is_short(value: bytes) -> bool:
    """True if a value is short enough to be written and read."""
    return len(value) <= _VALUE_BYTES_MAX


def _encoded(told: msgspec.Struct) -> bytes:
    payload = msgspec.msgpack.encode(told)
    return _checksum(payload) + payload


def _decoded(value: bytes, kind: type[T]) -> T | None:
    payload = value[_CHECKSUM_BYTES:]
    if not is_short(value) or value[:_CHECKSUM_BYTES] != _checksum(payload):
        return None
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=_CHECKSUM_BYTES).digest()
