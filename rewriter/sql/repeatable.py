"""Tests whether a part of the client's text means the same in a key query as in the statement, word by word.

A part is a condition, or a whole subquery, which must give the same rows when it is run again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from sqlglot import Token, TokenType, exp

from rewriter.sql.conditions import Conjunct, closing
from rewriter.sql.deterministic_functions import (
    CLOCK_WORDS,
    CLOCKS,
    DATE_FORMATTERS,
    FILTER_FUNCTIONS,
    FILTER_WORDS,
    KEEPS_LETTERS,
    LITERAL_FUNCTIONS,
    QUERY_FUNCTIONS,
    QUERY_WORDS,
    TAKE_DAYS,
    TEXT_MAKERS,
    UNITS,
    VIEW_FUNCTIONS,
    WITH_ARGUMENTS,
    WITH_UNIT,
)
from rewriter.sql.inline_tables import (
    LocatedRows,
    generated_column,
    located_generator,
    located_inline_table,
    read_by_generator,
)
from rewriter.sql.statement import Statement, parse_any
from rewriter.sql.time_travel import version_starts
from rewriter.vocabulary.cited import cited
from rewriter.vocabulary.identifiers import quoted

_OPERATORS = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.L_BRACKET,
        TokenType.R_BRACKET,
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.STAR,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.DPIPE,
        TokenType.NOT,
        TokenType.DCOLON,
        TokenType.NUMBER,
        TokenType.STRING,
    }
)


def uncertain_word(statement: Statement, conjunct: Conjunct, bare_functions: AbstractSet[str]) -> str | None:
    """The first word of a conjunct that may mean something else in a key query, or None.

    A positive list: names, and the words, operators and functions that are known, session functions among them,
    whose values the key query returns. `bare_functions` are those that need no parentheses. The caller makes sure
    that the columns are those of the small table, and that the subqueries are closed. The word is told in a
    sentence for the user.
    """
    tokens = statement.tokens[conjunct.first : conjunct.last + 1]
    tree = conjunct.tree
    # Columns, and fields of structs: in `struct(d.ds)` one identifier is that of both.
    named: tuple[type[exp.Expr], ...] = (exp.Column, exp.PropertyEQ)
    words, functions = FILTER_WORDS | bare_functions, FILTER_FUNCTIONS
    if tree.find(exp.Query) is not None:
        named = (exp.Expr,)
        words, functions = QUERY_WORDS | bare_functions, QUERY_FUNCTIONS
    identifiers = tree.find_all(exp.Identifier)
    names = {i.meta["start"] for i in identifiers if "start" in i.meta and isinstance(i.parent, named)}
    names |= version_starts(statement, tree)
    return _first_uncertain(statement, tokens, names, words, functions)


def _first_uncertain(
    statement: Statement,
    tokens: Sequence[Token],
    names: AbstractSet[int],
    words: AbstractSet[str],
    functions: AbstractSet[str],
) -> str | None:
    """The first token that is no name at one of the offsets `names`, no literal, and no known word or function."""
    if _spells_the_clock(tokens) or _may_make_the_clock(tokens, names, statement.calls.keys()):
        return "Spark may read a string in it as the clock, as it reads 'today' and 'now'"
    for index, (token, after) in enumerate(zip(tokens, [*tokens[1:], None], strict=True)):
        call = statement.calls.get(token.start)
        if call is not None:
            is_known = call.name in functions or ("current_date" in functions and _is_the_day(tokens, index))
            if not call.is_bare or not is_known or not _has_its_arguments(tokens, index):
                return _uncertain_call(tokens, index)
        elif after is not None and after.token_type is TokenType.L_PAREN:
            if not _is_known(statement.text, token, words | _QUANTIFIERS):
                return _uncertain_call(tokens, index)
        elif token.start not in names and not _is_known(statement.text, token, words):
            return _uncertain_name(tokens, index)
    return None


def _is_the_day(tokens: Sequence[Token], called: int) -> bool:
    """True for a call of the clock of which the day alone is taken: `to_date(now())`, `CAST(now() AS DATE)`."""
    before = [token.text.lower() for token in tokens[max(called - 2, 0) : called]]
    behind = [token.text.lower() for token in tokens[called + 1 : called + 6]]
    is_first = behind[:2] == ["(", ")"] and before[1:] == ["("] and tokens[called].text.lower() in CLOCKS
    if is_first and before[0] == "cast":
        return behind[2:] == ["as", "date", ")"]
    return is_first and before[0] in TAKE_DAYS and behind[2:3] in ([")"], [","])


def _uncertain_call(tokens: Sequence[Token], called: int) -> str:
    """The reason for users why a call is not known to give the same value each time."""
    name = tokens[called].text
    if called > 0 and tokens[called - 1].token_type is TokenType.DOT:
        return f"{name}(..) is called by its database's name, so that it may be a user's own function"
    if not _has_its_arguments(tokens, called):
        return f"{name}(..) without arguments, or by another unit, may be another function or the clock"
    return f"{name}(..) is not known to give the same value each time"


def _uncertain_name(tokens: Sequence[Token], index: int) -> str:
    """The same reason for a word that is not called; it may be the database of a function."""
    around = [token.token_type for token in tokens[index + 1 : index + 4 : 2]]
    if around == [TokenType.DOT, TokenType.L_PAREN]:
        return _uncertain_call(tokens, index + 2)
    return f"{cited(tokens[index].text)} is not known to mean the same each time"


def _has_its_arguments(tokens: Sequence[Token], called: int) -> bool:
    """True if a function has the arguments without which it would be another, or the clock."""
    word, first = tokens[called].text.lower(), tokens[called + 2 : called + 3]
    if word in WITH_UNIT:
        return bool(first) and first[0].text.lower() in UNITS
    return word not in WITH_ARGUMENTS or (bool(first) and first[0].token_type is not TokenType.R_PAREN)


def _spells_the_clock(tokens: Sequence[Token]) -> bool:
    """True if a string, or it and the next ones joined, is one that Spark reads as the clock.

    Spark joins `'to' 'day'` and `'to' || 'day'` before it casts them, and up to 4.0 `'to''day'` as well, in which
    sqlglot, like later versions, reads a quote.
    """
    strings = [token.text.translate(_NO_QUOTES) for token in tokens if token.token_type is TokenType.STRING]
    strings = [text for text in strings if text]
    # Each letter of a word may stand in a string of its own.
    strings_max = max(map(len, CLOCK_WORDS), default=0)
    for start in range(len(strings)):
        for end in range(start + 1, min(start + strings_max, len(strings)) + 1):
            found = _SPECIAL.fullmatch("".join(strings[start:end]).strip(_BLANKS))
            if found is not None and found["word"].lower() in CLOCK_WORDS:
                return True
    return False


_NO_QUOTES = str.maketrans("", "", "'\"")

# Characters that Java trims.
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))

# A word and perhaps a time zone: `today UTC` and `today+01:00`, but not `Nowhere`, `now UTC` or `today%`.
_SPECIAL = re.compile(r"(?P<word>[A-Za-z]+)(?:(?<!now)(?:[ \t]+|(?![A-Za-z]))[A-Za-z0-9~/._+:-]+)?", re.IGNORECASE)


def _may_make_the_clock(tokens: Sequence[Token], names: AbstractSet[int], calls: AbstractSet[int]) -> bool:
    """True if functions or `||` may make a text of literals alone that Spark reads as the clock.

    Spark looks for the clock's words in all that it can compute without columns: in
    `if(true, 'to', '') || 'day'` and in `concat('to', lower(hex(218)), 'y')`.
    """
    parts = (part for part in _texts_made(tokens) if not any(token.start in names for token in part))
    if any(_may_have_its_letters(part, names, calls) for part in parts):
        return True
    return _joins_computed_text(tokens, names) and _may_have_its_letters(tokens, names, calls)


def _texts_made(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The calls of functions that make texts."""
    for opening, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN and opening and tokens[opening - 1].text.lower() in TEXT_MAKERS:
            end = closing(tokens, opening)
            yield tokens[opening - 1 :] if end is None else tokens[opening - 1 : end + 1]


def _joins_computed_text(tokens: Sequence[Token], names: AbstractSet[int]) -> bool:
    """True if an operand of `||` is neither a literal nor a column, and holds no column as far as is seen."""
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.DPIPE and 0 < index < len(tokens) - 1:
            sides = (_operand_before(tokens, index), _operand_behind(tokens, index))
            if any(any(part.start in names for part in side) for side in sides):
                continue
            if any(len(side) != 1 or side[0].token_type not in _PLAIN for side in sides):
                return True
    return False


_PLAIN = frozenset({TokenType.STRING, TokenType.NUMBER})


def _operand_before(tokens: Sequence[Token], index: int) -> Sequence[Token]:
    """The tokens of the operand on the left of an operator, or the last of them."""
    start, depth = index - 1, 0
    for start in range(index - 1, -1, -1):
        kind = tokens[start].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth <= 0:
            break
    return tokens[start:index]


def _operand_behind(tokens: Sequence[Token], index: int) -> Sequence[Token]:
    """The tokens of the operand on the right of an operator, or the first of them."""
    opening = index + 1 + (index + 2 < len(tokens) and tokens[index + 2].token_type is TokenType.L_PAREN)
    if tokens[opening].token_type is not TokenType.L_PAREN:
        return tokens[index + 1 : index + 2]
    end = closing(tokens, opening)
    return tokens[index + 1 :] if end is None else tokens[index + 1 : end + 1]


def _may_have_its_letters(tokens: Sequence[Token], names: AbstractSet[int], starts: AbstractSet[int]) -> bool:
    """True if the texts made of literals alone may have all the letters of a word that is the clock."""
    calls = set(_calls_without_columns(tokens, names, starts))
    if not calls <= KEEPS_LETTERS:
        return True
    strings = [token.text for token in tokens if token.token_type is TokenType.STRING]
    if calls & DATE_FORMATTERS and not all(map(_SHOWS_DIGITS.fullmatch, strings)):
        return True
    if tokens[0].text.lower() in DATE_FORMATTERS:
        return False
    letters = set("".join(strings).lower())
    return any(map(_shows_letters, tokens)) or any(letters.issuperset(word) for word in CLOCK_WORDS)


def _calls_without_columns(
    tokens: Sequence[Token], names: AbstractSet[int], starts: AbstractSet[int]
) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token.start in starts:
            end = closing(tokens, at + 1)
            if not any(inner.start in names for inner in tokens[at + 1 : end]):
                yield token.text.lower()


def _shows_letters(token: Token) -> bool:
    """True for values whose text has letters: `true`, and numbers such as 1E10 and Infinity."""
    word = token.text.lower()
    if token.token_type is TokenType.NUMBER:
        return not word.isdigit()
    return token.token_type is TokenType.SLASH or word in _TYPES_WITH_LETTERS


_TYPES_WITH_LETTERS = frozenset({"true", "false", "boolean", "double", "float", "real", "interval"})

# Patterns of dates that show digits alone, also in the other case; units; and strings without letters.
_SHOWS_DIGITS = re.compile(
    r"(?:y+|M{1,2}|d+|H+|h+|m{1,2}|s+|S+|[^A-Za-z'])*|day|week|month|quarter|year|MON|(?:YY|MM)"
)


# Words that are known where a parenthesis stands behind them and they are no function.
_QUANTIFIERS = frozenset({"all", "any", "exists", "some"})


def _is_known(text: str, token: Token, words: AbstractSet[str]) -> bool:
    if token.token_type in _OPERATORS:
        return True
    if token.token_type is TokenType.IDENTIFIER:
        return False  # quoted: a name, whatever it says
    word = token.text.lower()
    return all(part in words for part in word.split()) or _is_number_suffix(text, token)


def _is_number_suffix(text: str, token: Token) -> bool:
    # A suffix such as 1L arrives as NUMBER, DCOLON, BIGINT at one offset, and its text is the suffix.
    return text[token.start].isdigit() and token.text.lower() in {"l", "s", "y", "f", "d", "bd"}


# Parentheses around the query's first name that are tried as the query's own.
_CANDIDATES_MAX = 20

# Rows chosen by their order or by chance, rows made of rows, and LATERAL, whose query reads other items.
_UNREPEATABLE_WORDS: Mapping[type[exp.Expr], str] = {
    exp.Limit: "LIMIT",
    exp.Offset: "OFFSET",
    exp.Window: "a window function",
    exp.TableSample: "TABLESAMPLE",
    exp.Pivot: "PIVOT or UNPIVOT",
    exp.Lateral: "LATERAL",
}
_UNREPEATABLE = tuple(_UNREPEATABLE_WORDS)


def located_query(statement: Statement, query: exp.Expr) -> Statement | None:
    """A query in parentheses as a statement of its own, or None if its place is not certain."""
    offsets = [node.meta["start"] for node in query.find_all(exp.Identifier) if "start" in node.meta]
    first = statement.token_at(min(offsets)) if offsets else None
    if first is None:
        return None
    for opening in _parentheses_around(statement, first):
        end = closing(statement.tokens, opening)
        if end is None:
            return None
        # From word to word: a comment behind the last one would hide the next words of the key query.
        inside = statement.tokens[opening + 1 : end]
        found = parse_any(statement.text[inside[0].start : inside[-1].end + 1])
        if found is not None and found.tree == query:
            return found
    return None


def uncertain_word_of_query(query: Statement, bare_functions: AbstractSet[str]) -> str | None:
    """The word by which a query may give other rows each time, for a user; None if all are deterministic.

    Session functions count as deterministic: the key query returns their values. The caller checks the rows that
    the query's clauses choose.
    """
    return _uncertain_word(query, QUERY_WORDS | bare_functions, QUERY_FUNCTIONS)


def uncertain_part_of_view(view: Statement) -> str | None:
    """The part of a view's text by which it may give other rows each time; None for a repeatable text.

    Session functions are excluded: the key query has the view's name alone, and cannot return their values.
    """
    return uncertain_rows(view.tree) or _uncertain_word(view, QUERY_WORDS, VIEW_FUNCTIONS)


def _uncertain_word(query: Statement, words: AbstractSet[str], functions: AbstractSet[str]) -> str | None:
    names = {i.meta["start"] for i in query.tree.find_all(exp.Identifier) if "start" in i.meta}
    names |= version_starts(query, query.tree)
    tokens = list(query.tokens)
    inline = [located_inline_table(query, values) for values in query.find_all(exp.Values)]
    for place in sorted((place for place in inline if place is not None), key=lambda place: -place.start):
        found = _first_uncertain(query, query.tokens[place.values], names, words, functions)
        if found is not None:
            return found
        del tokens[place.start : place.stop]
    return _first_uncertain(query, tokens, names, words, functions)


def repeatable_values(statement: Statement, values: exp.Expr) -> str | None:
    """An inline table with its alias as the client wrote it; None if its place or its rows are not certain."""
    return _repeatable_rows(statement, located_inline_table(statement, values))


def repeatable_generator(statement: Statement, node: exp.Expr) -> str | None:
    """The rows of a generator as a query in parentheses; None if its place or its rows are not certain."""
    rows = _repeatable_rows(statement, located_generator(statement, node))
    return f"(SELECT {rows} AS {quoted(generated_column(node) or '')})" if rows is not None else None


def repeatable_lateral_view(statement: Statement, node: exp.Expr, alias: str) -> str | None:
    """A LATERAL VIEW, whose generator may read columns; None if its place or its rows are not certain."""
    identifiers = (name for column in read_by_generator(node) for name in column.parts)
    names = frozenset(name.meta["start"] for name in identifiers if "start" in name.meta)
    rows = _repeatable_rows(statement, located_generator(statement, node), names)
    return f"LATERAL VIEW {rows} {alias} AS {quoted(generated_column(node) or '')}" if rows is not None else None


def _repeatable_rows(
    statement: Statement, place: LocatedRows | None, names: AbstractSet[int] = frozenset()
) -> str | None:
    if place is None:
        return None
    values = statement.tokens[place.values]
    found = _first_uncertain(statement, values, names, FILTER_WORDS, FILTER_FUNCTIONS)
    return place.text(statement) if found is None else None


def uncertain_rows(query: exp.Expr, is_certain: Callable[[exp.Expr], bool] = lambda _: False) -> str | None:
    """The clause of a query that chooses rows by their order or by chance, or a name that may read the clock.

    `is_certain` tells if all the rows that a clause may choose show the same.
    """
    clauses = (clause for clause in query.find_all(*_UNREPEATABLE) if not _gives_the_same(clause))
    clause = next((clause for clause in clauses if not is_certain(clause)), None)
    if clause is not None:
        word = next(word for kind, word in _UNREPEATABLE_WORDS.items() if isinstance(clause, kind))
        return f"{word} may choose other rows each time"
    names = (c.name.lower() for c in query.find_all(exp.Column) if not c.table)
    found = next((name for name in names if name in LITERAL_FUNCTIONS), None)
    return f"{found} without parentheses may be a column, or the clock or the user" if found is not None else None


def _gives_the_same(clause: exp.Expr) -> bool:
    """True for LATERAL VIEW, whose words are looked at; and for windows that are the same for rows of equal order.

    Such are `rank() OVER (.. ORDER BY ..)` and `max(..) OVER (..)`. The rows of an explicit frame (`ROWS BETWEEN
    ..`) may be others each time.
    """
    return bool(isinstance(clause, exp.Lateral) and clause.args.get("view")) or (
        isinstance(clause, exp.Window)
        and isinstance(clause.this, exp.Rank | exp.DenseRank | exp.Max | exp.Min | exp.Count)
        and clause.args.get("spec") is None
    )


def _parentheses_around(statement: Statement, index: int) -> list[int]:
    """The opening parentheses around a token, the nearest first."""
    found, depth = [], 0
    for position in range(index - 1, -1, -1):
        kind = statement.tokens[position].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0:
            found.append(position)
            depth = 0
        if len(found) == _CANDIDATES_MAX:
            break
    return found
