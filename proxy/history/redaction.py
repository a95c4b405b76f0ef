"""Records of statements as they may be kept and shown: without secrets always, without literals on request."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from proxy.history.record import PART_CHARS_MAX, TEXT_CHARS_MAX, Record
from proxy.session.explain.view import ScanView
from proxy.statements.literals import sentence_without_literals, without_literals
from proxy.statements.redaction import redacted, without_secrets
from proxy.statements.secret_names import holds_secret

# The class of an error, at the start of a message: nothing of the statement stands before it.
_CLASS: Final = re.compile(r"[^\[\"'`]*+\[([A-Z][A-Z0-9_.]*+)\]")
_WITHHELD: Final = "The message is not kept, since it may quote a secret."


def kept(record: Record, *, literals: bool) -> Record:
    """The record as it may be kept and shown.

    If the statement has a secret, only the two texts keep literals: plans and messages spell them in other ways.
    """
    original, is_secret = redacted(record.original)
    rewritten, is_secret_too = redacted(record.rewritten or "")
    has_literals = literals and not (is_secret or is_secret_too or _is_cut(record.original))
    if not literals or _is_cut(record.original):
        original = without_literals(original)
    # The rewritten text has all of the original, and may be cut only because of its keys.
    if not has_literals and (not literals or _is_cut(record.rewritten or "")):
        rewritten = without_literals(rewritten)
    return msgspec.structs.replace(
        record,
        original=original,
        rewritten=None if record.rewritten is None else rewritten,
        cause=_sentence(record.cause, has_literals=has_literals),
        scans=[_scan(scan, has_literals=has_literals) for scan in record.scans],
        # It quotes the statement, and values of rows.
        message=_message(record.message, has_literals=has_literals) if literals else None,
    )


def kept_text(text: str, *, literals: bool, chars_max: int = TEXT_CHARS_MAX) -> str:
    """The text as it may be kept and shown.

    A text that was cut keeps no literals: the name that makes one a secret may have stood behind the cut.
    """
    return _text(text, literals=literals and not _is_cut(text, chars_max))


def _text(text: str, *, literals: bool) -> str:
    text = without_secrets(text)
    return text if literals else without_literals(text)


def _is_cut(text: str, chars_max: int = TEXT_CHARS_MAX) -> bool:
    return len(text) > chars_max


def _message(message: str | None, *, has_literals: bool) -> str | None:
    """The message of a failure, or its error class where the rest may quote a secret."""
    if message is None or (has_literals and not holds_secret(message)):
        return message
    found = _CLASS.match(message)
    return _WITHHELD if found is None else f"[{found[1]}] {_WITHHELD}"


def _sentence(sentence: str | None, *, has_literals: bool) -> str | None:
    if sentence is None or (has_literals and not holds_secret(sentence)):
        return sentence
    return sentence_without_literals(sentence)


def _scan(scan: ScanView, *, has_literals: bool) -> ScanView:
    def part(text: str) -> str:
        return kept_text(text, literals=has_literals, chars_max=PART_CHARS_MAX)

    def predicate(text: str | None) -> str | None:
        # In a predicate of ours, the column stands before each literal.
        return None if text is None else _text(text, literals=has_literals)

    reducers = [
        msgspec.structs.replace(one, join=part(one.join), key_query=part(one.key_query)) for one in scan.reducers
    ]
    would = scan.would
    if would is not None:
        would = msgspec.structs.replace(would, predicate=predicate(would.predicate))
    return msgspec.structs.replace(
        scan,
        reducers=reducers,
        predicate=predicate(scan.predicate),
        would=would,
        cause=_sentence(scan.cause, has_literals=has_literals),
    )
