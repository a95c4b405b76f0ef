"""Texts that are known without a parser: taken for another only where the fingerprint is the same."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.errors import SqlglotError

from proxy.session.feedback import known_texts
from proxy.session.feedback.known_texts import KnownTexts, without_constants
from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.fingerprint import fingerprint
from rewriter.sql.statement import Statement

SQL = "SELECT sum(x) FROM f1 JOIN d ON f1.k = d.k WHERE d.day = DATE '2024-01-01' AND d.g IN (1, 2) LIMIT 10"


def fingerprint_of(sql: str) -> str | None:
    """The fingerprint of a text, whether it is a statement or not; None where sqlglot has no tokens for it."""
    try:
        return fingerprint(Statement(sql, exp.Null(), tuple(tokenize(sql))))
    except SqlglotError:
        return None


@pytest.mark.parametrize(
    "other",
    [
        SQL.replace("2024-01-01", "2024-01-02"),
        SQL.replace("10", "2.5"),
        SQL.replace("1, 2", "1, 2,\n 3, 4"),
        SQL.replace("1, 2", "7"),
        SQL.replace("2024-01-01", "it''s"),
        SQL.replace("2024-01-01", "ann@example.org"),
    ],
)
def test_texts_that_differ_in_constants_alone_are_one(other: str) -> None:
    known = KnownTexts()
    known.parsed(SQL, "5ba7")
    assert known.fingerprint(SQL) == "5ba7"
    assert (known.fingerprint(other) == "5ba7") is ("''" not in other)
    assert fingerprint_of(other) == fingerprint_of(SQL)


def test_comments_that_change_with_each_statement_make_no_other_text() -> None:
    known = KnownTexts()
    known.parsed(f"""-- Looker '{{"history_id": 12}}'\n/* it's $7 */{SQL}""", "5ba7")
    assert known.fingerprint(f"""-- Looker '{{"history_id": 345}}'\n/* it's me@7 */{SQL}""") == "5ba7"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("SELECT 1 FROM a1", "SELECT 1 FROM a2", id="digits of a name"),
        pytest.param("SELECT 1 FROM 1a", "SELECT 1 FROM 2a", id="a name that begins with a digit"),
        pytest.param("SELECT 1 FROM `1`", "SELECT 1 FROM `2`", id="a quoted name"),
        pytest.param(
            "SELECT a -- it's\n FROM b -- '", "SELECT c -- it's\n FROM d -- '", id="a quote in a comment"
        ),
        pytest.param("SELECT a /*'*/ FROM b --'", "SELECT a /*'*/ FROM c --'", id="one in a bracketed comment"),
        pytest.param("SELECT `'`, a FROM b, `'`", "SELECT `'`, a FROM c, `'`", id="a quote in a name"),
        pytest.param("""SELECT "'", a FROM b, "'\"""", """SELECT "'", a FROM c, "'\"""", id="a quote in a string"),
        pytest.param("SELECT /*+ REPARTITION(1) */ 1", "SELECT /*+ REPARTITION(2) */ 1", id="a hint"),
    ],
)
def test_texts_that_differ_in_more_are_two(one: str, other: str) -> None:
    assert without_constants(one) != without_constants(other)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(r"SELECT 'it\'s', a FROM b WHERE c = '1'", id="an escape"),
        pytest.param("SELECT /* a /* b */ it's */ a FROM b", id="a comment in a comment"),
        pytest.param("SELECT {# it's #} a FROM b", id="a comment that sqlglot reads"),
        pytest.param("SELECT \0 FROM b", id="the sign of a constant"),
        pytest.param("SELECT '" + "x" * 70_000 + "'", id="a long text"),
    ],
)
def test_a_text_with_constants_that_may_end_elsewhere_is_known_as_it_is(sql: str) -> None:
    assert without_constants(sql) is None
    known = KnownTexts()
    known.parsed(sql, "5ba7")
    assert known.fingerprint(sql) == "5ba7"
    assert known.fingerprint(f"{sql} ") is None


PIECES = [
    *("SELECT", "a", "b1", "1b", "`", "'", "''", "--", "\n", "/*", "*/", "/*+", "{#", "#}", "//", "\\", '"', "X"),
    *("1", "22", ".", ",", "(", ")", "-", "1.5", "2e3", "3L", "_", "é", "r'", "DATE", "?", ":", "$", " ", "'x'"),
]


@st.composite
def texts_and_others(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts of which the second has some pieces of the first exchanged."""
    pieces: Sequence[str] = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12))
    others = [draw(st.sampled_from([piece, piece, *PIECES])) for piece in pieces]
    separator = draw(st.sampled_from(["", " "]))
    return separator.join(pieces), separator.join(others)


@given(texts_and_others())
def test_texts_that_are_taken_for_one_have_one_fingerprint(pair: tuple[str, str]) -> None:
    one, other = pair
    if without_constants(one) is None or without_constants(one) != without_constants(other):
        return
    fingerprints = fingerprint_of(one), fingerprint_of(other)
    assert None in fingerprints or len(set(fingerprints)) == 1


def test_a_text_with_the_sign_of_a_constant_is_no_text_without_constants() -> None:
    known = KnownTexts()
    known.parsed("SELECT 1 FROM a", "5ba7")
    assert known.fingerprint("SELECT \0 FROM a") is None


def test_the_texts_that_were_parsed_longest_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_texts, "_DIGESTS_MAX", 6)
    known = KnownTexts()
    for name in "abc":
        known.parsed(f"SELECT 1 FROM {name}", name)
    assert [known.fingerprint(f"SELECT 2 FROM {name}") for name in "abc"] == ["a", "b", "c"]
    known.parsed("SELECT 1 FROM d", "d")
    assert known.fingerprint("SELECT 3 FROM a") is None
    assert known.fingerprint("SELECT 3 FROM d") == "d"
