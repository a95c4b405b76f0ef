"""Texts that sqlglot would read again and again are refused before it begins."""

from contextlib import suppress

import pytest
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from rewriter import SkipReason, parse
from rewriter.partitions.filter_text import FilterError, read_filter
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.sql.bounded_parser import TOKENS_READ_AGAIN_MAX, ReadAgainError, parsed, tokenize, tokens_read_again
from rewriter.sql.statement import Statement, parse_any

_JOIN = "SELECT 1 FROM f JOIN d ON f.ds = d.ds WHERE "

# The ways in which a word can stand around itself.
_FORMS = (
    ("{}(", "1", ")"),
    ("{}(a, ", "1", ")"),
    ("{}(", "1", ", a)"),
    ("({} ", "1", ")"),
    ("(a ", "1", " {} 1)"),
    ("{}<", "int", ">"),
    ("{}[", "1", "]"),
    ("1 {} (", "1", ")"),
    ("{} ", "1", ""),
    ("{} a ", "", ""),
    ("(SELECT 1 FROM t {} ", "1", ")"),
    ("(SELECT 1 FROM t {} a ", "1", ")"),
)


class _ReadAgain(SparkParser):
    """sqlglot's parser, which counts the tokens that it goes back over."""

    tokens = 0

    def _retreat(self, index: int) -> None:
        self.tokens += max(0, self._index - index)
        if self.tokens > TOKENS_READ_AGAIN_MAX:
            raise ReadAgainError("counted")
        super()._retreat(index)


def _counted(text: str) -> int:
    parser = _ReadAgain(dialect=Spark())
    with suppress(SqlglotError, RecursionError, ValueError, LookupError, TypeError, AttributeError):
        parser.parse(tokenize(text), text)
    return parser.tokens


def _nested(form: tuple[str, str, str], word: str, levels: int) -> str:
    opening, innermost, closing = form
    return _JOIN + opening.format(word) * levels + innermost + closing.format(word) * levels


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "INNER JOIN"])
def test_joins_without_conditions_are_refused_where_reading_them_doubles(join: str) -> None:
    few, many = ("SELECT 1 FROM f " + f"{join} d " * levels + "WHERE f.ds = d.ds" for levels in (6, 40))

    assert isinstance(parse(few, chars_max=10_000), Statement)
    assert parse(many, chars_max=10_000) is SkipReason.TOO_INTRICATE


def test_joins_with_conditions_are_read_once_however_many() -> None:
    joins = " ".join(f"JOIN d d{n} ON f.ds = d{n}.ds CROSS JOIN e e{n} NATURAL JOIN g g{n}" for n in range(300))

    assert tokens_read_again(tokenize(f"SELECT 1 FROM f, h {joins} WHERE f.x = 1")) == 0


def test_offsets_within_offsets_are_refused_too() -> None:
    text = "SELECT 1 FROM f JOIN " + "(SELECT 1 FROM t OFFSET " * 30 + "1" + ")" * 30

    assert parse(text, chars_max=10_000) is SkipReason.TOO_INTRICATE


@pytest.mark.parametrize("word", ["date", "struct", "decimal", "timestamp", "int", "STRING", "double precision"])
def test_calls_by_the_names_of_types_are_refused_where_reading_them_doubles(word: str) -> None:
    few, many = (_JOIN + f"{word}(" * levels + "1" + ")" * levels + " = 1" for levels in (4, 40))

    assert isinstance(parse(few, chars_max=10_000), Statement)
    assert parse(many, chars_max=10_000) is SkipReason.TOO_INTRICATE
    assert parse_any(many) is None
    with pytest.raises(FilterError):
        read_filter(many.removeprefix(_JOIN), PartitionKeys(("y",), ("int",)))


def test_a_long_text_is_refused_for_fewer_levels_than_a_short_one() -> None:
    longer = ", ".join(["1"] * 5_000)

    assert isinstance(parse(_JOIN + f"struct(struct({longer})) = 1", chars_max=10**6), Statement)
    assert (
        parse(_JOIN + f"struct(struct(struct(struct({longer})))) = 1", chars_max=10**6) is SkipReason.TOO_INTRICATE
    )


def test_no_word_of_spark_makes_sqlglot_read_again_what_is_not_foreseen() -> None:
    of_kinds = {kind: word for word, kind in Spark.tokenizer_class.KEYWORDS.items() if word[:1].isalpha()}
    unforeseen = []
    for word in sorted({*of_kinds.values(), *SparkParser.FUNCTION_PARSERS, "F", "ELEMENT_AT"}):
        for form in _FORMS:
            # A doubling shows itself between six levels and eight, long before it takes time.
            texts = [_nested(form, word, levels) for levels in (6, 8)]
            is_foreseen = tokens_read_again(tokenize(texts[1])) > len(tokenize(texts[1])) * 10
            if not is_foreseen and _counted(texts[1]) > 3 * _counted(texts[0]) + 100:
                unforeseen.append(texts[0])

    assert not unforeseen


def test_the_parser_raises_before_it_reads() -> None:
    text = "SELECT " + "date(" * 60 + "1" + ")" * 60

    with pytest.raises(ReadAgainError):
        parsed(tokenize(text), text)
