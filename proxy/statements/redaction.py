"""Texts of statements as they may be kept: without secrets.

One pass over the tokens, linear in the text, which need not parse. A literal is a secret where a name before it
says so (`password = 'x'`, OPTIONS (token 'x'), map('api.key', 'x')), or one behind it ('x' AS password), or where
it holds one itself, as the URL of a database may. Behind a quote without an end nothing is kept.

>>> without_secrets("SELECT 'a' FROM t WHERE pwd = /* b */ 'c' 'd' AND url <> 's3a://key:secret@bucket/'")
"SELECT 'a' FROM t WHERE pwd = /* b */ ? ? AND url <> ?"
"""

from __future__ import annotations

import re
from typing import Final

from proxy.statements.literals import ADDED, LITERAL, TOKEN, end_of_comment
from proxy.statements.secret_names import NAME_CHARS_MAX, holds_secret, is_secret_name, mentions_secret

_TOKEN_OR_SIGN: Final = re.compile(rf"{TOKEN.pattern} | (?P<sign>\S)", re.VERBOSE | re.DOTALL)
# Strings beside one another, which may be parts of a name.
_ADJACENT: Final = re.compile(r"['\"]\s*+(?:['\"]|/\*|--)")
_BEGINS_SETTING: Final = ("set", "/*", "--", ";", "(")
_NOWHERE: Final = -1
_QUOTES: Final = frozenset("'\"")
# Stands for a literal like `password=` before the adjacent literal, which is its value; and the end of such a
# literal.
_ASSIGNED: Final = "secret="
_ENDS_OPEN: Final = re.compile(r"[:=]\s*+['\"]?\s*+\Z")
# A value without quotes; and the sign behind a word that is no value.
_BARE: Final = re.compile(r"[^\s,;()'\"`]++")
_GOES_ON: Final = re.compile(r"\s*+[('\"]")
# Behind these words the value of a name cannot stand any more.
_ENDS: Final = frozenset(
    """
    and or from where group order having limit join on using union intersect except then else end values select set
    options tblproperties location partitioned comment lateral window into null true false
    """.split()
)
# Signs between a literal and the name behind it.
_BEFORE_A_NAME: Final = frozenset("=<>!|+)")


def without_secrets(text: str) -> str:
    """The text without the value of a SET, and without literals that are secrets.

    >>> without_secrets("SET fs.s3a.secret.key=abc")
    'SET fs.s3a.secret.key=?'
    """
    return redacted(text)[0]


def redacted(text: str) -> tuple[str, bool]:
    """The same, and whether there was a secret."""
    if not _is_suspect(text):
        return text, False
    added = ADDED.fullmatch(text)
    if added is not None:
        is_secret = holds_secret(added["path"])
        return f"{added['name']} {LITERAL}" if is_secret else text, is_secret
    reading = _Pass()
    return reading.read(text), reading.has_secret


def _is_suspect(text: str) -> bool:
    """True if a text may have a secret: most have none, and need no pass."""
    lower = text.lower()
    if mentions_secret(lower) or any(mark in lower for mark in ("://", "jdbc:", "bearer ", "sig=")):
        return True
    is_setting = "set" in lower and lower.lstrip().startswith(_BEGINS_SETTING)
    return is_setting or _ADJACENT.search(text) is not None


class _Pass:
    """One pass over the tokens of a text."""

    def __init__(self) -> None:
        self.has_secret = False
        self._parts: list[str] = []
        self._first_word = ""
        # The last token but for comments, and the end of the string that it is a part of.
        self._before = self._string = ""
        # The depth of parentheses at which a secret name stands, for as long as its value may follow.
        self._secret_at = _NOWHERE
        self._has_value = self._is_range = False
        # Places of the literals that are shown. `_subject` is their number before the expression that a name may
        # follow. `_groups` has it for each open parenthesis, None for that of a query, and whether it is that of
        # an IN.
        self._shown: list[int] = []
        self._subject: int | None = None
        self._groups: list[tuple[int | None, bool]] = []
        # A secret name that may be one of a list of columns. If it is, any value of a row may be the secret.
        self._column = ""
        self._is_listed = self._has_rows = False

    def read(self, text: str) -> str:
        """The text as it is kept."""
        at = 0
        while (token := _TOKEN_OR_SIGN.search(text, at)) is not None:
            self._parts.append(text[at : token.start()])
            at = self._take(text, token)
        self._parts.append(text[at:])
        if self._is_listed and self._has_rows:
            self._hide(0)
        return "".join(self._parts)

    def _take(self, text: str, token: re.Match[str]) -> int:
        """Append a token as it is kept. Returns its end, or that of what goes with it."""
        kind, piece, end = token.lastgroup, token.group(), token.end()
        if kind == "comment":
            end = end_of_comment(text, token)
            is_secret = holds_secret(text[token.start() : end])
            self.has_secret |= is_secret
            self._parts.append(" " if is_secret else text[token.start() : end])
            return end
        if piece == "=" and self._first_word == "set" and text[end:].strip():
            self.has_secret = True
            self._parts.append(f"={LITERAL}")
            return len(text)
        bare = self._bare_value(text, token)
        if bare:
            kind, piece, end = "number", bare, token.start() + len(bare)
        if kind == "sign":
            self._sign(piece)
        elif kind == "word":
            self._word(piece)
        else:
            self._literal(piece, kind or "")
        self._before = piece
        return end

    def _bare_value(self, text: str, token: re.Match[str]) -> str:
        """The value without quotes that begins here, behind a secret name and `=`, if it is no call or column."""
        kind, piece = token.lastgroup, token.group()
        if self._secret_at == _NOWHERE or self._before != "=" or (kind == "sign" and piece not in "/+-"):
            return ""
        if piece.lower() in _ENDS or is_secret_name(piece) or _GOES_ON.match(text, token.end()):
            return ""
        found = _BARE.match(text, token.start())
        is_column = found is None or ("." in piece and kind == "word" and piece == found[0])
        return "" if is_column or found is None else found[0]

    def _literal(self, piece: str, kind: str) -> None:
        is_string, is_value = kind != "number", self._secret_at != _NOWHERE
        # Strings beside one another are one.
        before = self._string if is_string and self._before[-1:] in _QUOTES else ""
        content = before + (piece.lstrip("rR")[1:-1] if kind == "string" else piece)
        tells = is_string and holds_secret(content)
        self.has_secret |= is_value or tells
        self._subject = len(self._shown) if self._subject is None else self._subject
        is_shown = not (is_value or tells or kind == "open")
        if is_shown:
            self._shown.append(len(self._parts))
        self._parts.append(piece if is_shown else LITERAL)
        self._string = (_ASSIGNED if tells else "") + content[-NAME_CHARS_MAX:]
        if is_value:
            # A number may be the 256 of sha2(password, 256).
            self._has_value |= is_string
        elif is_string and (_ENDS_OPEN.search(content) if tells else self._is_key(content)):
            self._await_value()

    def _is_key(self, content: str) -> bool:
        is_in_list = bool(self._groups) and self._groups[-1][1]
        return is_secret_name(content) and not is_in_list

    def _word(self, piece: str) -> None:
        self._parts.append(piece)
        word = piece.lower()
        self._first_word = self._first_word or word
        self._has_rows |= word in {"values", "insert"}
        is_secret = is_secret_name(piece[-NAME_CHARS_MAX:])
        self._column = piece if is_secret and self._groups and self._before in {"(", ","} else ""
        if is_secret and self._subject is not None:
            self._hide(self._subject)
        # The second value of `password BETWEEN 'x' AND 'y'`.
        is_second = word == "and" and self._is_range and self._secret_at != _NOWHERE
        self._is_range = word == "between" or (self._is_range and word not in _ENDS)
        if word in _ENDS or (self._has_value and self._is_outside):
            self._secret_at = _NOWHERE
        if is_secret or is_second:
            self._await_value()
        if word == "select" and self._groups:
            self._groups[-1] = (None, False)
        if word != "as":
            self._subject = None

    def _sign(self, sign: str) -> None:
        self._parts.append(sign)
        self._is_listed |= sign in {",", ")"} and self._column == self._before != ""
        if sign not in _BEFORE_A_NAME:
            self._subject = None
        match sign:
            case "(":
                self._groups.append((len(self._shown), self._before.lower() == "in"))
            case ")":
                self._subject = self._groups.pop()[0] if self._groups else None
                if self._secret_at > len(self._groups):
                    self._secret_at = _NOWHERE if self._has_value else len(self._groups)
            case ",":
                # map('password', 'x'), and sha2(password, 256) = 'x'.
                is_pair = self._before[-1:] in _QUOTES and not self._has_value
                if self._is_outside and not is_pair and self._before != self._column:
                    self._secret_at = _NOWHERE
            case ";":
                self._secret_at = _NOWHERE
            case _:
                self._has_value &= sign in {"]", "}"}

    @property
    def _is_outside(self) -> bool:
        """True if no parenthesis is open that was opened behind the secret name."""
        return len(self._groups) <= self._secret_at

    def _await_value(self) -> None:
        self._secret_at, self._has_value = len(self._groups), False

    def _hide(self, begin: int) -> None:
        hidden = self._shown[begin:]
        del self._shown[begin:]
        self.has_secret |= bool(hidden)
        for place in hidden:
            self._parts[place] = LITERAL
