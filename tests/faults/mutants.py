"""Mutated statements: what a careless hand, another tool or an attacker makes of SQL that makes sense.

Most mutants are no SQL any more. The others mean something else, often something that nobody would write, and
those are worth the most: the rewriter has to understand them as Spark does, or leave them alone.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

Pieces: TypeAlias = list[str]

# String literals with their escapes, quoted names, comments and hints, words, numbers, spaces, and the rest.
_PIECES: Final = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\s+|<=>|<>|!=|<=|>=|\|\||.", re.DOTALL
)
_WORD: Final = re.compile(r"[^\W\d]\w*|`[^`]+`")
_LITERAL: Final = re.compile(r"\d+|'.*'|null|true|false", re.IGNORECASE | re.DOTALL)

_LITERALS: Final = (
    *("0", "1", "-1", "2147483648", "1e3", "NULL", "TRUE", "''", "'01'", "'it''s'", "'a\\'b'", "'\\\\'"),
    *("DATE'2026-01-01'", "'2026-01-01'", "current_date()", "X'31'", "1.0", "'é中'", "'%'", "' 1'", "r'\\d'"),
)
_JOINS: Final = (
    *("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN"),
    *("LEFT ANTI JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN", "FULL OUTER JOIN", ","),
)
_JOIN: Final = re.compile(
    r"(?:\b(?:inner|left|right|full|cross|natural|semi|anti|outer)\s+)*\bjoin\b", re.IGNORECASE
)
_OPERATORS: Final = ("=", "<=>", "<>", "<", ">=", "!=", "==")
_CONNECTIVES: Final = ("AND", "OR", "AND NOT", "OR NOT")
_CLAUSES: Final = frozenset(
    "select from where group having order on using join left right inner union with limit".split()
)
_INSERTED: Final = (
    *(" /* c */ ", " /*+ BROADCAST(f) */ ", " -- c\n", " --\\\n", "/*", "*/", "'", '"', "`", ";", "(", ")", ","),
    *(
        "\x00",
        "\ufeff",
        "\u00a0",
        "\u2028",
        "\uff07",
        "\u0130",
        "\U0001f994",
        "é",
        "$",
        "${x}",
        "\\",
        "|>",
        "@",
        "::",
    ),
    *(" NOT ", " DISTINCT ", " ALL ", " LATERAL ", " AS x ", " IS NULL ", " OR TRUE ", " EXISTS ", " LIMIT 0 "),
)
_SPANS_MAX: Final = 8


@dataclass(frozen=True)
class Mutator:
    """Makes mutants of some statements. What it puts in comes from the others."""

    seeds: Sequence[str]

    def mutant(self, rng: Random) -> str:
        """One of the seeds after one to three mutations."""
        pieces = split(rng.choice(self.seeds))
        for _ in range(rng.choice((1, 1, 2, 3))):
            mutate = rng.choice(_MUTATIONS)
            pieces = split("".join(mutate(pieces, split(rng.choice(self.seeds)), rng)))
        return "".join(pieces)


def split(sql: str) -> Pieces:
    """The pieces of a statement; joined they are the statement."""
    return _PIECES.findall(sql)


def _places(pieces: Pieces, matches: Callable[[str], object]) -> list[int]:
    return [place for place, piece in enumerate(pieces) if matches(piece)]


def _is_solid(piece: str) -> bool:
    return not piece.isspace()


def _delete(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    places = _places(pieces, _is_solid)
    if not places:
        return pieces
    start = rng.choice(places)
    return pieces[:start] + pieces[start + rng.randint(1, _SPANS_MAX) :]


def _double(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    start = rng.randrange(len(pieces) + 1)
    stop = start + rng.randint(1, _SPANS_MAX)
    return [*pieces[:stop], " ", *pieces[start:]]


def _swap(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    places = _places(pieces, _is_solid)
    if len(places) < 2:
        return pieces
    one, other = rng.sample(places, 2)
    swapped = list(pieces)
    swapped[one], swapped[other] = pieces[other], pieces[one]
    return swapped


def _replaced(pieces: Pieces, places: list[int], new: str, rng: Random) -> Pieces:
    if not places:
        return pieces
    place = rng.choice(places)
    return [*pieces[:place], new, *pieces[place + 1 :]]


def _other_literal(pieces: Pieces, others: Pieces, rng: Random) -> Pieces:
    literals = [piece for piece in others if _LITERAL.fullmatch(piece)] + [rng.choice(_LITERALS)]
    return _replaced(pieces, _places(pieces, _LITERAL.fullmatch), rng.choice(literals), rng)


def _other_name(pieces: Pieces, others: Pieces, rng: Random) -> Pieces:
    """A word in the place of another of the statement itself, or of one that it has nothing to do with."""
    words = [piece for piece in (pieces if rng.random() < 0.7 else others) if _WORD.fullmatch(piece)]
    return _replaced(pieces, _places(pieces, _WORD.fullmatch), rng.choice(words or ["x"]), rng)


def _other_join(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    sql = "".join(pieces)
    joins = list(_JOIN.finditer(sql))
    if not joins:
        return pieces
    join = rng.choice(joins)
    return [sql[: join.start()], rng.choice(_JOINS), sql[join.end() :]]


def _other_operator(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    if rng.random() < 0.5:
        return _replaced(pieces, _places(pieces, _OPERATORS.__contains__), rng.choice(_OPERATORS), rng)
    places = _places(pieces, lambda piece: piece.upper() in _CONNECTIVES)
    return _replaced(pieces, places, rng.choice(_CONNECTIVES), rng)


def _drop_clause(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    clauses = _places(pieces, lambda piece: piece.lower() in _CLAUSES)
    if not clauses:
        return pieces
    which = rng.randrange(len(clauses))
    stop = clauses[which + 1] if which + 1 < len(clauses) else len(pieces)
    return pieces[: clauses[which]] + pieces[stop:]


def _insert(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    place = rng.randrange(len(pieces) + 1)
    return [*pieces[:place], rng.choice(_INSERTED), *pieces[place:]]


def _other_case(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    return [piece.swapcase() if rng.random() < 0.3 else piece for piece in pieces]


def _graft(pieces: Pieces, others: Pieces, rng: Random) -> Pieces:
    """A piece of another statement in the place of one of this."""
    start, from_ = rng.randrange(len(pieces) + 1), rng.randrange(len(others) + 1)
    taken = others[from_ : from_ + rng.randint(1, 2 * _SPANS_MAX)]
    return [*pieces[:start], " ", *taken, " ", *pieces[start + rng.randint(0, _SPANS_MAX) :]]


def _bracket(pieces: Pieces, _: Pieces, rng: Random) -> Pieces:
    start, stop = sorted(rng.randrange(len(pieces) + 1) for _ in "12")
    before, after = rng.choice((("(", ")"), ("NOT (", ")"), ("(SELECT * FROM ", ")"), ("coalesce(", ", 1)")))
    return [*pieces[:start], before, *pieces[start:stop], after, *pieces[stop:]]


# Those that often leave SQL behind stand more than once.
_MUTATIONS: Final = (
    *(_delete, _double, _swap, _insert, _graft, _bracket, _drop_clause, _other_case),
    *(_other_literal, _other_name, _other_name, _other_name, _other_join, _other_join, _other_operator),
)
