r"""Filters that HBase tests on the rows of a partition list, from the conditions that range scans leave to test.

HBase's filter language has regular expressions on a row's key, and nothing else that looks behind its beginning.
It reads the key as UTF-8, in which a byte of ASCII is itself, and other bytes that are no text become characters
of another kind. So an expression has the bytes of ASCII of a field and leaves the others open, and it may fit
anywhere in the key. Some rows pass that do not satisfy the conditions, and the proxy tests all that come; none is
left out that does.

Conditions are pushed down that name bytes of a field: `=`, IN, and LIKE by the texts between its wildcards. An
order, a negation and a null name none, and are left to the proxy.

>>> from rewriter.partitions.filter_tree import In
>>> row_filter((In("r", ("eu", "us")),), PartitionKeys(("k", "r"), ("int", "string")))
b"RowFilter(=, 'regexstring:\\x01eu\\x00\\x01|\\x01us\\x00\\x01')"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rewriter.partitions.filter_tree import And, Compare, In, Like, Operator, Or, PartitionFilter, terms_of
from rewriter.partitions.key_encoding import VALUE, PartitionKeys
from rewriter.partitions.like import LikePattern
from rewriter.partitions.value_encoding import NotIndexableError, encoded_prefix

# HBase tries the texts of an expression one after the other, at each place of each key: these are some hundred.
_FILTER_BYTES_MAX: Final = 2_000
_UNSAFE: Final = re.compile(rb"(?P<other>[\x80-\xff]+)|[^0-9A-Za-z]")
_NOT_ASCII: Final = rb"[^\x00-\x7f]+"


def row_filter(conditions: Sequence[PartitionFilter], keys: PartitionKeys) -> bytes:
    """A filter that all entries pass which satisfy the conditions. Empty where it would leave none out."""
    terms = [term for condition in conditions for term in terms_of(And((condition,)))]
    expressions = [expression for term in terms for expression in _expressions(term, keys)]
    text = b" AND ".join(b"RowFilter(=, 'regexstring:%s')" % expression for expression in expressions)
    return text if len(text) <= _FILTER_BYTES_MAX else b""


def _expressions(term: PartitionFilter, keys: PartitionKeys) -> list[bytes]:
    """Expressions of which each fits all entries that satisfy a term of an AND."""
    if not isinstance(term, Or):
        return _of_leaf(term, keys)
    # Of an AND within the OR nothing is pushed down, nor then of the OR.
    alternatives = [_of_leaf(one, keys) for one in terms_of(term)]
    return [b"|".join(max(one, key=len) for one in alternatives)] if alternatives and all(alternatives) else []


def _of_leaf(leaf: PartitionFilter, keys: PartitionKeys) -> list[bytes]:
    if isinstance(leaf, Compare) and leaf.operator is Operator.EQUAL:
        leaf = In(leaf.column, (leaf.value,))
    try:
        if isinstance(leaf, In):
            column = keys.position(leaf.column)
            fields = [keys.encode_field(column, value) for value in leaf.values if value is not None]
            return [b"|".join(map(_expression, fields))] if fields else []
        if isinstance(leaf, Like) and not leaf.negated:
            return [_expression(text) for text in _texts(leaf, keys)]
    except NotIndexableError:
        pass
    return []


def _texts(leaf: Like, keys: PartitionKeys) -> list[bytes]:
    """The bytes between the wildcards of a pattern: one expression for all of them would try all their places."""
    terminator = keys.encode_field(keys.position(leaf.column), "")[len(VALUE) :]
    parts: list[bytes | None] = [VALUE]
    for number, segment in enumerate(LikePattern.of(leaf.pattern, leaf.escape).segments):
        parts += [None] if number else []
        parts += [None if character is None else encoded_prefix(character) for character in segment]
    parts.append(terminator)
    texts = [b"".join(filter(None, group)) for is_text, group in groupby(parts, bool) if is_text]
    return [text for text in texts if text not in {VALUE, terminator}]


def _expression(text: bytes) -> bytes:
    """An expression, of ASCII alone, that fits each key with these bytes."""
    return _UNSAFE.sub(lambda found: _NOT_ASCII if found["other"] else rb"\x%02x" % found[0][0], text)
