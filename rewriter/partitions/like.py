"""LIKE patterns as Spark reads them: `%` is any text, `_` any one character, an escape makes either plain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rewriter.partitions.value_encoding import NotIndexableError

_ANY_TEXT, _ANY_CHARACTER = "%", "_"
# A longer pattern takes seconds to be compiled, and more for each value.
_CHARS_MAX = 1_000


@dataclass(frozen=True)
class LikePattern:
    """A pattern, cut at each `%`. A segment is its characters in order; None is any character."""

    segments: tuple[tuple[str | None, ...], ...]

    @classmethod
    def of(cls, pattern: str, escape: str = "\\") -> LikePattern:
        """The pattern that the text means. Raises NotIndexableError for one that Spark rejects, or a long one."""
        if len(pattern) > _CHARS_MAX:
            raise NotIndexableError(f"a pattern of more than {_CHARS_MAX} characters")
        segments: list[list[str | None]] = [[]]
        for character, is_escaped in _characters(pattern, escape):
            if character == _ANY_TEXT and not is_escaped:
                segments.append([])
            else:
                is_any = character == _ANY_CHARACTER and not is_escaped
                segments[-1].append(None if is_any else character)
        return cls(tuple(map(tuple, segments)))

    @cached_property
    def prefix(self) -> str:
        """The text that all matches start with."""
        first = self.segments[0]
        length = first.index(None) if None in first else len(first)
        return "".join(character for character in first[:length] if character is not None)

    @property
    def is_text(self) -> bool:
        """True if nothing but the prefix itself matches."""
        return len(self.segments) == 1 and len(self.prefix) == len(self.segments[0])

    @property
    def is_prefix(self) -> bool:
        """True if all that starts with the prefix matches."""
        return len(self.segments) > 1 and not any(self.segments[1:]) and len(self.prefix) == len(self.segments[0])

    @cached_property
    def _expressions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(
            re.compile("".join("." if c is None else re.escape(c) for c in segment), re.DOTALL)
            for segment in self.segments
        )

    def matches(self, text: str) -> bool:
        """True if the whole text fits.

        Each segment is taken at the first place where it fits. One expression for all segments would try every
        other place as well, in time exponential in their number.
        """
        first, *others = self._expressions
        if not others:
            return first.fullmatch(text) is not None
        last_start = len(text) - len(self.segments[-1])
        found = first.match(text)
        for expression in others[:-1]:
            found = expression.search(text, found.end()) if found is not None else None
        return found is not None and found.end() <= last_start and others[-1].match(text, last_start) is not None


def _characters(pattern: str, escape: str) -> Iterator[tuple[str, bool]]:
    """The characters of a pattern, each with True if it was escaped."""
    if len(escape) != 1:
        raise NotIndexableError("LIKE's escape is one character")
    characters = iter(pattern)
    for character in characters:
        if character != escape:
            yield character, False
            continue
        escaped = next(characters, "")
        if escaped not in {_ANY_TEXT, _ANY_CHARACTER, escape}:
            raise NotIndexableError("LIKE's escape stands before neither %, _ nor itself")
        yield escaped, True
