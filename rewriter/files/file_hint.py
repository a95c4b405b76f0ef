"""File hint: a condition by which Spark skips files before it reads any of them.

It names only files that are known to miss, by path, size and modification time together: a file that is new, that
was written again, or whose path is spelled otherwise is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewriter.domains.literals import UnreadableKeyError, literal, literals
from rewriter.files.file_facts import FileFacts

_SEPARATOR = ", "

FILE_SIZE = "_metadata.file_size"
FILE_TIME = "unix_millis(_metadata.file_modification_time)"
# `file_identity` as an expression, for the file that a row is in.
FILE_IDENTITY = f"concat(_metadata.file_path, '|', CAST({FILE_SIZE} AS STRING), '|', CAST({FILE_TIME} AS STRING))"

# Spark prunes files by a condition on `_metadata` alone, and evaluates it again for every row that it reads.
# Joining the texts takes longer than reading the row (5 million rows in 2.4 s and more, without it in 0.6), so the
# numbers come first: a file with a size or a time of its own is let through by these (0.7 s).
_HINT = f"({FILE_SIZE} NOT IN ({{sizes}}) OR {FILE_TIME} NOT IN ({{times}}) OR {FILE_IDENTITY} NOT IN ({{names}}))"


def file_hint(misses: Sequence[FileFacts], chars_max: int) -> tuple[str, tuple[FileFacts, ...]]:
    """The condition that a row is in none of the files, and the files that fit into it: the largest first.

    It is one condition in parentheses; empty for none.
    """
    chars_left = chars_max - len(_HINT)
    names: list[str] = []
    named: list[FileFacts] = []
    for facts in sorted(misses, key=lambda facts: facts.size_bytes, reverse=True):
        if len(facts.path) > chars_left:
            continue  # most of forty thousand files end here
        try:
            name = literal("string", facts.identity)
        except UnreadableKeyError:
            continue  # a path whose bytes did not arrive whole
        chars = len(name) + len(_bigints([facts.size_bytes])) + len(_bigints([facts.modified_ms]))
        chars += 3 * len(_SEPARATOR)
        if chars <= chars_left:
            chars_left -= chars
            names.append(name)
            named.append(facts)
    if not names:
        return "", ()
    sizes = _bigints(facts.size_bytes for facts in named)
    times = _bigints(facts.modified_ms for facts in named)
    return _HINT.format(sizes=sizes, times=times, names=_SEPARATOR.join(names)), tuple(named)


def _bigints(numbers: Iterable[int]) -> str:
    return _SEPARATOR.join(literals("bigint", dict.fromkeys(numbers)))
