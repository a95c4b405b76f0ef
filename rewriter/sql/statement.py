"""The client's text, read once: tokens with their offsets, and sqlglot's tree of them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TypeAlias, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from rewriter.sql.bounded_parser import ReadAgainError, parsed, tokenize
from rewriter.sql.calls import Call, calls_in
from rewriter.sql.classify import QUERY_FIRST_WORDS, depends_on_quoting, first_word, may_be_rewritten
from rewriter.sql.words_as_names import has_clause_of_sqlglot, name_words
from rewriter.vocabulary.skip_reason import SkipReason

N = TypeVar("N", bound=exp.Expr)

_READING_WORDS = frozenset({"select", "with", "from", "values"})
_WRITING = (exp.DDL, exp.DML, exp.Command)

# Spark's lexer lets a backslash at the end of a line carry a `--` comment on (SIMPLE_COMMENT in
# SqlBaseLexer.g4); sqlglot's does not, so the two would disagree on what is text and what is comment.
_BACKSLASH_NEWLINE = re.compile(r"\\\r?\n")

# A parsed text takes some 230 bytes of memory a character. Views are read for many statements and sessions, so
# the last ones are kept: 15 MB where they are a screenful each, 240 MB if every one is as long as may be.
VIEW_TEXT_CHARS_MAX = 16 * 1024
_VIEWS_KEPT_MAX = 64

# MetadataColumns in Iceberg's core, by the names that Spark hides them behind.
_ICEBERG_METADATA = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)

# Errors that sqlglot raises for a text. Its functions look at their arguments before they count them: `map(1)` is
# an IndexError, `date_trunc()` a ValueError, and its documentation does not list them all.
_UNPARSED = (SqlglotError, RecursionError, ValueError, LookupError, TypeError, AttributeError)

# The error of a quote without an end, with its offset; and characters that an explanation quotes.
_OPENED = re.compile(r"Missing \S+ from \d+:(\d+)")
_SHOWN_CHARS = 40

# Words before a TABLE that names the table to create or write, or is the name of a column. Anywhere else TABLE
# begins a query, in parentheses, behind a WITH or in a UNION, or an argument of a function.
_BEFORE_TABLE = frozenset({"create", "replace", "external", "into", "overwrite", "."})

_OVERWRITING = (TokenType.INSERT, TokenType.OVERWRITE)

# Set operations, and the quantifiers that may stand behind them.
_SET_OPERATIONS = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_SET_QUANTIFIERS = frozenset({TokenType.ALL, TokenType.DISTINCT})

# Begins no comment within a comment to Spark, which nests comments but not hints; sqlglot nests both.
_HINT = "/*+"

# Names that match nothing but themselves if they are read as patterns.
_PLAIN_NAME = re.compile(r"[^\\^$.|?*+()\[\]{}]+")

_COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CHAINED = (*_COMPARISONS, exp.NEQ, exp.NullSafeNEQ)
_TRUTHS = (*_CHAINED, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Not)


@dataclass(frozen=True)
class Statement:
    """A parsed query. Offsets are in characters of `text`."""

    text: str
    tree: exp.Expr
    tokens: tuple[Token, ...]
    # The client's own text, if `text` has versions inserted (`rewriter.planning.snapshot_pins`).
    client_text: str | None = None
    # The aliases of derived tables that hold the texts of views (`rewriter.planning.view_joins`).
    view_texts: frozenset[str] = frozenset()

    @property
    def original(self) -> str:
        """The text as the client wrote it."""
        return self.text if self.client_text is None else self.client_text

    @cached_property
    def _nodes(self) -> tuple[exp.Expr, ...]:
        """The nodes of the tree, those of each level together, without literals and identifiers.

        The nodes in a hint are not among them: sqlglot takes names there for tables, with offsets within the hint.
        """
        nodes = [self.tree]
        for node in nodes:
            if not isinstance(node, exp.Hint):
                nodes += [child for child in node.iter_expressions() if not isinstance(child, _LEAVES)]
        return tuple(nodes)

    def find_all(self, *kinds: type[N]) -> Iterator[N]:
        """The nodes of these kinds, outer ones first; hints are found, but no nodes in them.

        Literals and identifiers are not found.
        """
        return (node for node in self._nodes if isinstance(node, kinds))

    @cached_property
    def token_starts(self) -> list[int]:
        """The offset of each token, ascending; `token_at` searches them."""
        return [token.start for token in self.tokens]

    @cached_property
    def reads_metadata(self) -> bool:
        """True if Spark's hidden column `_metadata` is named anywhere."""
        return any(token.text.lower() == "_metadata" for token in self.tokens)

    @cached_property
    def iceberg_metadata(self) -> frozenset[str]:
        """The hidden columns of Iceberg's tables that the statement names anywhere."""
        return _ICEBERG_METADATA & {token.text.lower() for token in self.tokens}

    @cached_property
    def names_files(self) -> bool:
        """True if the statement asks Spark which file, or which part of one, a row comes from."""
        return any(token.text.lower().startswith("input_file_") for token in self.tokens)

    @cached_property
    def database_qualifiers(self) -> frozenset[str]:
        """Lower-case names before the column in `a.b.c`, as database or as table, and b in a hint's `a.b`.

        `db.t.x` names table t by database; `a.t.x` looks the same and may be a field of column t. The hint
        `BROADCAST(db.t)` finds no table behind an alias.
        """
        columns = [column for column in self.find_all(exp.Column) if column.args.get("db")]
        names = frozenset(name.lower() for column in columns for name in (column.table, column.args["db"].name))
        hinted = (node for hint in self.find_all(exp.Hint) for node in hint.find_all(exp.Table, exp.Column))
        return names.union(node.name.lower() for node in hinted if node.args.get("db") or node.args.get("table"))

    def may_write(self, parts: Sequence[str]) -> bool:
        """True if the table that the statement writes may have the name, whose parts stand outermost first."""
        target = _target(self.tree)
        return isinstance(target, exp.Table) and _may_be_one(_parts(target), parts)

    @cached_property
    def proven(self) -> dict[Hashable, bool]:
        """The insertions looked at so far: True if they leave all other text as it is (`predicates.splice`)."""
        return {}

    @property
    def inserts(self) -> bool:
        """True for INSERT, which may read the table that it writes: then other tables alone are small sides."""
        return isinstance(self.tree, exp.Insert)

    @property
    def merged_into(self) -> exp.Table | None:
        """The target of a MERGE, whose name may be a view's; None for any other statement."""
        return self.tree.this if isinstance(self.tree, exp.Merge) else None

    @cached_property
    def merge_join(self) -> exp.Select | None:
        """A MERGE as `SELECT FROM target RIGHT JOIN source ON ..`, which pairs the same rows; None for no MERGE.

        The join keeps all rows of the source, as MERGE looks at each. The parts are the tree's own nodes.
        """
        if not isinstance(self.tree, exp.Merge):
            return None
        target, source, on = (self.tree.args[name] for name in ("this", "using", "on"))
        join = exp.Join(this=source, on=on, side="RIGHT")
        found = exp.Select(from_=exp.From(this=target), joins=[join])
        found.parent = self.tree
        return found

    @cached_property
    def tables_read(self) -> tuple[exp.Table, ...]:
        """The tables that it may read, understood or not, and table functions: no name that is surely a CTE's."""
        return tuple(_tables_read(self.tree))

    @cached_property
    def calls(self) -> Mapping[int, Call]:
        """The functions that it calls, and some words that may be none, by the offsets of their names."""
        return {call.start: call for call in calls_in(self.tokens, self._nodes)}

    @cached_property
    def only_reads(self) -> bool:
        """True if it is a query and writes nothing: `WITH .. INSERT` and `FROM .. INSERT` begin like one."""
        begins_as_query = first_word(self.text) in _READING_WORDS
        return (
            begins_as_query and isinstance(self.tree, exp.Query) and next(self.find_all(*_WRITING), None) is None
        )

    @cached_property
    def comparisons_on_join_columns(self) -> int:
        """The number of values that the statement itself compares with columns of its joins, by their names.

        Spark infers from `f.k = d.k AND d.k IN (..)` that f.k is in the list, and sends that filter to the
        metastore too.
        """
        joined = {
            identifier.name.lower()
            for join in self.find_all(exp.Join)
            for identifier in join.args.get("using") or ()
        }
        values = Counter[str]()
        for node in self.find_all(exp.In, exp.Between, *_COMPARISONS):
            sides = [side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Column)]
            names = [side.name.lower() for side in sides]
            if len(sides) == 2:  # noqa: PLR2004 - both sides
                joined.update(names)
            elif names:
                values[names[0]] += len(node.expressions) if isinstance(node, exp.In) else 2
        return sum(count for name, count in values.items() if name in joined)

    @property
    def planned_text(self) -> str:
        """The text whose plan shows what the statement reads: for CREATE TABLE .. AS, the query."""
        depth = 0
        for token, after in pairwise(self.tokens) if isinstance(self.tree, exp.Create) else ():
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if depth == 0 and token.token_type is TokenType.ALIAS:
                return self.text[after.start :]
        return self.text

    def token_at(self, offset: int) -> int | None:
        """The index of the token that starts at the offset, if one does."""
        index = bisect_left(self.token_starts, offset)
        return index if index < len(self.tokens) and self.tokens[index].start == offset else None


def parse(
    text: str,
    *,
    chars_max: int,
    has_file_index: bool = False,
    has_views: bool = False,
    has_small_files: bool = False,
) -> Statement | SkipReason:
    """Parse a statement, or answer the reason why it cannot be rewritten. Never raises for any text.

    The text is read under Spark's default settings: the caller checks `depends_on_quoting` first.
    """
    if first_word(text) not in QUERY_FIRST_WORDS:
        return SkipReason.NOT_A_QUERY
    if len(text) > chars_max:
        return SkipReason.TOO_LARGE
    if not may_be_rewritten(
        text, has_file_index=has_file_index, has_views=has_views, has_small_files=has_small_files
    ):
        return SkipReason.NO_JOIN_IN_TEXT
    if "${" in text:
        return SkipReason.SUBSTITUTION
    if _BACKSLASH_NEWLINE.search(text):
        return SkipReason.UNUSUAL_TEXT
    return _parse(text)


@lru_cache(maxsize=_VIEWS_KEPT_MAX)
def parse_view(text: str) -> Statement | None:
    """Parse the query of a view; None where it is not certain how Spark reads it.

    Spark reads it under the settings that the view was made with, and those for quotes are not known here.
    """
    if len(text) > VIEW_TEXT_CHARS_MAX or "${" in text or depends_on_quoting(text):
        return None
    found = _parse(text)
    return found if isinstance(found, Statement) and isinstance(found.tree, exp.Query) else None


def parse_tree(text: str) -> exp.Expr | None:
    """The tree of a text that holds one statement; None for any other."""
    found = parse_any(text)
    return found.tree if found is not None else None


def parse_any(text: str) -> Statement | None:
    """The statement that a text holds, of whatever kind; None for any other text."""
    try:
        tokens = tokenize(text)
        name_words(tokens)
        trees = _trees(tokens, text)
    except _UNPARSED:
        return None
    tree = trees[0] if len(trees) == 1 else None
    return Statement(text, tree, tuple(tokens)) if tree is not None else None


def parse_to_read(text: str, *, chars_max: int) -> Statement | None:
    """Parse a statement of whatever kind for the tables that it reads; None where these are not certain.

    The text is read under Spark's default settings, as `parse` reads it.
    """
    if len(text) > chars_max or "${" in text or _BACKSLASH_NEWLINE.search(text):
        return None
    found = parse_any(text)
    if found is None or not isinstance(found.tree, exp.Query | exp.Insert | exp.Create | exp.Merge):
        return None
    return None if _holds_unusual_words(list(found.tokens)) or _is_unusual(found) else found


def parse_failure(text: str) -> str | None:
    """The place at which the parser gives up, and what stands there; None if it is not known, or the text long."""
    if len(text) > VIEW_TEXT_CHARS_MAX:
        return None
    try:
        tokens = tokenize(text)
        name_words(tokens)
        _trees(tokens, text)
    except _UNPARSED as error:
        told = error.errors[0] if isinstance(error, ParseError) and error.errors else None
        opened = _OPENED.fullmatch(str(error.__cause__))
        if told is not None:
            # The error tells the column of the word's end.
            part, column = told["highlight"], told["col"] - len(told["highlight"]) + 1
            shown = (told["start_context"] + part)[-_SHOWN_CHARS:].splitlines()[-1].strip()
            return f"at line {told['line']}, column {column}: `{shown}`"
        if opened is not None:
            at = int(opened[1])
            line, column, part = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), text[at:]
            shown = part[:_SHOWN_CHARS].splitlines()[0]
            return f"a quote without an end at line {line}, column {column}: `{shown}`"
    return None


def _parse(text: str) -> Statement | SkipReason:
    try:
        tokens = tokenize(text)
        name_words(tokens)
        if _holds_unusual_words(tokens):
            return SkipReason.UNUSUAL_TEXT
        trees = _trees(tokens, text)
    except ReadAgainError:
        return SkipReason.TOO_INTRICATE
    except _UNPARSED:
        return SkipReason.DOES_NOT_PARSE
    if len(trees) != 1:
        return SkipReason.SEVERAL_STATEMENTS
    (tree,) = trees
    if tree is None:
        return SkipReason.NOT_A_QUERY
    statement = Statement(text, tree, tuple(tokens))
    return _refusal(statement) or statement


def _trees(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """Parse the tokens of a text; semicolons and comments may follow. Raises what sqlglot raises (`_UNPARSED`)."""
    start, stop = _format_of_directory(tokens)
    trees = parsed(tokens[:start] + tokens[stop:], text)
    while len(trees) > 1 and (trees[-1] is None or isinstance(trees[-1], exp.Semicolon)):
        trees.pop()
    return trees


def _format_of_directory(tokens: Sequence[Token]) -> tuple[int, int]:
    """The bounds of `USING .. OPTIONS (..)` in INSERT OVERWRITE DIRECTORY '..', which sqlglot does not read."""
    pairs = pairwise(token.token_type for token in tokens)
    at = next((index for index, pair in enumerate(pairs, 2) if pair == _OVERWRITING), len(tokens))
    is_local = [token.text.upper() for token in tokens[at : at + 1]] == ["LOCAL"]
    start = at + is_local + 2
    kinds = [token.token_type for token in tokens[start - 1 : start + 3]]
    if kinds[:2] != [TokenType.STRING, TokenType.USING] or TokenType.L_PAREN in kinds[2:3]:
        return 0, 0
    stop = start + 2
    types = [token.token_type for token in tokens]
    while types[stop : stop + 1] == [TokenType.DOT]:
        stop += 2
    if [token.text.upper() for token in tokens[stop : stop + 1]] != ["OPTIONS"]:
        return start, stop
    return (start, types.index(TokenType.R_PAREN, stop) + 1) if TokenType.R_PAREN in types[stop:] else (0, 0)


def _holds_unusual_words(tokens: list[Token]) -> bool:
    """True if the tree does not show where a query ends or what it reads, or a comment's end is not certain.

    `TABLE x` is a query over x; sqlglot reads an item named TABLE with the alias x. `f(1, TABLE(x))` passes x to a
    function, and IDENTIFIER('x') is x; sqlglot reads calls of functions. In `.. UNION FROM t SELECT k LIMIT 1`
    Spark limits the second query, and sqlglot the union.
    """
    kinds = [token.token_type for token in tokens]
    unquantified = (kind for kind in kinds if kind not in _SET_QUANTIFIERS)
    if any(before in _SET_OPERATIONS and kind is TokenType.FROM for before, kind in pairwise(unquantified)):
        return True
    if TokenType.PIPE_GT in kinds or any(map(_reads_table, pairwise(tokens))):
        return True
    called = (token.text.lower() for token, after in pairwise(tokens) if after.token_type is TokenType.L_PAREN)
    return "identifier" in called or any(_HINT in comment for token in tokens for comment in token.comments)


def _reads_table(pair: tuple[Token, Token]) -> bool:
    """True if the second token is TABLE and begins a query."""
    before, token = pair
    return token.token_type is TokenType.TABLE and before.text.lower() not in _BEFORE_TABLE


def _chains_comparisons(statement: Statement) -> bool:
    """True if an operand of a comparison is itself a comparison, without parentheses.

    Spark reads `a = b < c` and `a = b IN (c)` from the left, as `(a = b) < c` and `(a = b) IN (c)`. In sqlglot `=`
    binds less than `<` and `IN`, so that `a` would be compared with `b < c`.
    """
    compared = (side for found in statement.find_all(*_CHAINED) for side in found.iter_expressions())
    return any(isinstance(side, _TRUTHS) for side in compared)


def is_plain_name(name: str) -> bool:
    """True if a name in a select list cannot be a pattern, as spark.sql.parser.quotedRegexColumnNames allows."""
    return _PLAIN_NAME.fullmatch(name) is not None


def _shows_patterns(statement: Statement) -> bool:
    """True if a name in a query of a select list may be a pattern: such a query has patterns in conditions too."""
    return any(
        not is_plain_name(column.name) and _is_shown_by_query(column) for column in statement.find_all(exp.Column)
    )


def _is_shown_by_query(column: exp.Column) -> bool:
    """True if the column is in a query of a select list. The search goes outwards, as few names need it."""
    node: exp.Expr = column
    is_in_query = False
    while node.parent is not None:
        is_in_query |= isinstance(node, exp.Query)
        if is_in_query and isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            return True
        node = node.parent
    return False


def _calls_as_table(statement: Statement) -> bool:
    """True if a function's call is read as a table with columns, as in `FROM rows(a)` and `SELECT into.f(a)`."""
    named = (table.args.get("alias") for table in statement.find_all(exp.Table))
    has_into = next(statement.find_all(exp.Into), None) is not None
    return has_into or any(alias is not None and alias.this is None for alias in named)


def _names_by_field(statement: Statement) -> bool:
    """True if a name may be that of a field of a variant, which Spark gives to the output: `v:x` is named x."""
    for select in statement.find_all(exp.Select):
        if select is statement.tree and not select.args.get("group") and not select.args.get("order"):
            continue
        for output in select.expressions:
            shown = output
            while isinstance(shown, exp.Cast):
                shown = shown.this
            if shown.args.get("variant_extract"):
                return True
    return False


def _is_unusual(statement: Statement) -> bool:
    """True if sqlglot may read the text in another way than Spark."""
    unusual = (_chains_comparisons, _shows_patterns, _calls_as_table, _names_by_field)
    return has_clause_of_sqlglot(statement.tokens) or any(is_unusual(statement) for is_unusual in unusual)


def _refusal(statement: Statement) -> SkipReason | None:
    """The reason why a statement of its kind is not rewritten; None if it may be."""
    tree = statement.tree
    if _is_unusual(statement):
        return SkipReason.UNUSUAL_TEXT
    if isinstance(tree, exp.Query):
        return None
    target = _target(tree)
    if target is None or not (_is_merge(tree) or _writes_query(tree)):
        return SkipReason.NOT_A_QUERY
    if isinstance(target, exp.Directory):
        # The directory may be that of a table that is read, or lie within it. The table then loses files before
        # the query reads it, and gets others after that: the query finds no row that was not there for the keys.
        return None
    if statement.inserts:
        return None
    written = _parts(target)
    reads_target = any(_may_be_one(written, _parts(table)) for table in statement.tables_read)
    return SkipReason.WRITES_WHAT_IT_READS if reads_target else None


def _writes_query(tree: exp.Expr) -> bool:
    """True if it writes the rows of one query. A statement that stores its text, as CREATE VIEW, is left alone."""
    is_ctas = isinstance(tree, exp.Create) and tree.kind == "TABLE"
    return (isinstance(tree, exp.Insert) or is_ctas) and isinstance(tree.args.get("expression"), exp.Query)


def _is_merge(tree: exp.Expr) -> bool:
    """True for a MERGE whose queries are all in its source.

    One that deletes rows of the target for which the source has none is left alone: whatever the source lacks
    would be lost.
    """
    clauses = {name: value for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Merge) or clauses.keys() - {"with_"} != {"this", "using", "on", "whens"}:
        return False
    on, whens = tree.args["on"], tree.args["whens"]
    if not isinstance(tree.this, exp.Table) or not isinstance(on, exp.Expr) or on.find(exp.Query) is not None:
        return False
    by_source = any(when.args.get("source") for when in whens.expressions)
    return not by_source and whens.find(exp.Query) is None


def _target(tree: exp.Expr) -> exp.Table | exp.Directory | None:
    """The table that a statement writes, or the directory that it names by a path."""
    found = tree.this if isinstance(tree, exp.Insert | exp.Create | exp.Merge) else None
    found = found.this if isinstance(found, exp.Schema) else found
    if isinstance(found, exp.Directory):
        # Without a path it is a table of that name, or the path stands in the OPTIONS.
        return found if isinstance(found.this, exp.Literal) else None
    return found if isinstance(found, exp.Table) else None


def _parts(table: exp.Table) -> list[str]:
    # sqlglot makes a table of `..t`, which is no name to Spark: its other parts are empty texts.
    return [part.name for part in (table.args.get("db"), table.this) if isinstance(part, exp.Expr)]


def _may_be_one(name: Sequence[str], other: Sequence[str]) -> bool:
    """True if two names may denote one table: their last parts are alike, and their databases if both have one.

    Catalogs are not compared: two of them may show one metastore. A path, delta.`/lake/a`, may be of any table.
    """
    is_by_path = any("/" in part for part in (*name, *other))
    return is_by_path or all(a.lower() == b.lower() for a, b in zip(name[:-3:-1], other[:-3:-1], strict=False))


# Nodes that name no table; lists may have thousands of them.
_LEAVES = (exp.Literal, exp.Identifier)

# The places of CTEs in a WITH by their names, and the place up to which they are seen.
_Seen: TypeAlias = tuple[Mapping[str, int], int]


def _tables_read(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables of a statement without its target, its hints, and the names that are surely those of CTEs."""
    target = _target(tree)
    pending: list[tuple[exp.Expr, tuple[_Seen, ...]]] = [(tree, ())]
    while pending:
        node, seen = pending.pop()
        if isinstance(node, exp.Hint):
            continue
        if isinstance(node, exp.Table) and node is not target and not _is_surely_cte(node, seen):
            yield node
        with_, inside = node.args.get("with_"), seen
        if isinstance(with_, exp.With):
            ctes = with_.expressions
            places = {cte.alias: place for place, cte in reversed(list(enumerate(ctes)))}
            pending += [(cte, (*seen, (places, place))) for place, cte in enumerate(ctes)]
            inside = (*seen, (places, len(ctes)))
        below = (child for child in node.iter_expressions() if child is not with_)
        pending += [(child, inside) for child in below if not isinstance(child, _LEAVES)]


def _is_surely_cte(table: exp.Table, seen: Iterable[_Seen]) -> bool:
    if table.args.get("db") or table.args.get("version"):
        return False
    return any(places.get(table.name, stop) < stop for places, stop in seen)
