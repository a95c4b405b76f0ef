"""The same statement in other letters: case, quotes and comments where Spark does not mind them."""

import re
from random import Random

_PIECES = re.compile(r"'(?:[^'\\]|\\.)*'|\w+|\s+|.", re.DOTALL)
_NAMES = re.compile(r"(?:[fds][123]|k[12]|[abt]\d+|again|answer|key1|m|q2?)")
_COMMENTS = (" /* from f1 join */ ", " -- it's\n", "\n", " /* not a hint */ ", "\t")


def dressed(sql: str, rng: Random) -> tuple[str, set[str]]:
    """The statement with some names in other case or between backticks, and comments between words."""
    shapes = {"odd string literal"} if re.search(r"'(?:[^'\\]|\\.)*\\.|'[^']*[^\x00-\x7f]", sql) else set()
    pieces = _PIECES.findall(sql)
    if rng.random() < 0.15:
        shapes.add("case varies")
        pieces = [piece.upper() if _is_name(piece) and rng.random() < 0.4 else piece for piece in pieces]
    if rng.random() < 0.15:
        shapes.add("quoted names")
        pieces = [f"`{piece}`" if _is_name(piece) and rng.random() < 0.4 else piece for piece in pieces]
    if rng.random() < 0.15:
        shapes.add("comments")
        pieces = [rng.choice(_COMMENTS) if p == " " and rng.random() < 0.2 else p for p in pieces]
    return "".join(pieces), shapes


def _is_name(piece: str) -> bool:
    return _NAMES.fullmatch(piece) is not None
