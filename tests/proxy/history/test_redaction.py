"""Texts in the history: without secrets, and on request without literals."""

import doctest
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.histories import left_alone, record, scan
from support.spelled_secrets import HARMLESS, SECRET, SPELLINGS

from proxy.history import record as record_module
from proxy.history.record import Record, cut
from proxy.history.redaction import kept, kept_text
from proxy.statements import literals, redaction, secret_names
from proxy.statements.literals import sentence_without_literals, without_literals
from proxy.statements.redaction import redacted, without_secrets

PRIVATE = "pr1v4te"

LITERALS = [
    *(f"SELECT '{PRIVATE}'", f'SELECT "{PRIVATE}"', f"SELECT 'it''s {PRIVATE}'", f"SELECT 'a\\' {PRIVATE}'"),
    *(f"SELECT r'a\\', '{PRIVATE}'", f"SELECT R\"a\\\", '{PRIVATE}'", f"SELECT 'a' '{PRIVATE}'"),
    *(f"SELECT X'00', N'{PRIVATE}', DATE '{PRIVATE}', TIMESTAMP'{PRIVATE}'", f"SELECT 1 -- {PRIVATE}"),
    *(f"SELECT 1 -- a \\\n {PRIVATE}\n, 2", f"SELECT /* {PRIVATE} */ 1", f"SELECT /* a /* b */ {PRIVATE} */ 1"),
    *(f"SELECT /* {PRIVATE}", f"SELECT '{PRIVATE}", f'SELECT "{PRIVATE}', f"SELECT `{PRIVATE}"),
    *(f"SELECT /*+ COALESCE('{PRIVATE}') */ 1", f"SELEC FORM ((( '{PRIVATE}' ]]"),
    *(f"SET spark.hadoop.fs.s3a.secret.key={PRIVATE}", f"/* a comment */ set x = {PRIVATE}"),
    *(f"SET TIME ZONE '{PRIVATE}=a'", f"ADD JAR /home/{PRIVATE}/a.jar"),
    *(f"/* {PRIVATE} */ LIST FILES /home/{PRIVATE}", f"INSERT INTO t VALUES ('{PRIVATE}', 5)"),
]


@pytest.mark.parametrize("text", LITERALS)
def test_nothing_of_a_literal_or_a_comment_remains(text: str) -> None:
    assert PRIVATE not in without_literals(without_secrets(text))


@pytest.mark.parametrize("number", ["4711", "-4711", "47.11", ".4711", "4711e5", "4711L", "4711BD", "0x4711"])
def test_no_number_remains(number: str) -> None:
    assert "4711" not in without_literals(f"SELECT a1 FROM t2 WHERE x = {number} AND y<{number}")


def test_names_hints_and_operators_remain() -> None:
    text = "SELECT /*+ BROADCAST(d2) */ `odd 'name'`, t1.a FROM db.t1 JOIN d2 ON t1.k <=> d2.k -- why"
    wanted = "SELECT /*+ BROADCAST(d2) */ `odd 'name'`, t1.a FROM db.t1 JOIN d2 ON t1.k <=> d2.k"
    assert without_literals(text) == wanted


def test_lists_of_any_length_look_alike() -> None:
    assert without_literals("a IN (1, 2, 3)") == without_literals("a IN (1,2)") == "a IN (?, ..)"


@given(st.text(alphabet="abr'\"`\\/*-+0 \n=", max_size=40))
def test_any_text_is_taken_and_no_digit_is_left(text: str) -> None:
    # Beside digits within names, which these texts have only behind letters.
    left = re.sub(r"`[^`]*`|[abr][abr0]*", "", without_literals(text))
    assert "0" not in left


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SET a.b=secret", "SET a.b=?"),
        ("SET a.b", "SET a.b"),
        ("SELECT 'x' = 1", "SELECT 'x' = 1"),
        ("UPDATE t SET a = 1", "UPDATE t SET a = 1"),
        ("CREATE TABLE t USING jdbc OPTIONS (password 'x', url 'y')", None),
        ("ALTER TABLE t SET TBLPROPERTIES ('api.key' = \"x\")", "ALTER TABLE t SET TBLPROPERTIES ('api.key' = ?)"),
    ],
)
def test_secrets_are_never_kept(text: str, wanted: str | None) -> None:
    assert without_secrets(text) == (wanted or "CREATE TABLE t USING jdbc OPTIONS (password ?, url 'y')")


def test_a_sentence_keeps_its_words_and_not_the_literals_it_cites() -> None:
    said = sentence_without_literals("the filter `d.dow > 4711` was not used: rand(..) gives 'private'")
    assert said == "the filter `d.dow > ?` was not used: rand(..) gives ?"


def test_a_record_without_literals_has_none_anywhere() -> None:
    one = record(message="'may' is no date")
    two = left_alone(cause="the filter `d.month = 'may'` was not used")
    assert b"may" in msgspec.json.encode([kept(one, literals=True), kept(two, literals=True)])
    encoded = msgspec.json.encode([kept(one, literals=False), kept(two, literals=False)])
    assert b"may" not in encoded
    assert b"2026-05" not in encoded


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_secret_is_hidden_however_it_is_spelled(text: str) -> None:
    shown, has_secret = redacted(text)
    assert SECRET not in shown
    assert has_secret
    assert SECRET not in without_literals(shown)


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_text_may_be_cut_anywhere(text: str) -> None:
    whole = text.find(SECRET) + len(SECRET)
    shown = [kept_text(cut(text, end), literals=True, chars_max=end) for end in range(whole)]
    assert not [one for one in shown if SECRET[:3] in one]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_kept(text: str) -> None:
    assert redacted(text) == (text, False)


@given(
    st.lists(st.sampled_from([*"'\"`()=,;:/\\-? \n", "/*", "*/", "password", "SET ", "values", "as", "'x'", "7"]))
)
def test_any_text_is_taken_and_changed_where_there_is_a_secret_alone(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown, has_secret = redacted(text)
    # Beside the rest behind a quote without an end.
    assert has_secret or shown == text or any(quote in text for quote in "'\"`")
    assert shown.count("\n") <= text.count("\n")


def _failed(original: str, message: str, **changes: object) -> Record:
    return record(original=original, rewritten=None, scans=[], outcome="failed", message=message, **changes)


def test_of_a_message_that_may_quote_a_secret_the_error_class_is_kept() -> None:
    syntax = "Error running query: [PARSE_SYNTAX_ERROR] Syntax error at or near 'hunter2' (line 1)\n== SQL ==\n"
    quoting = [
        _failed("create connection_x password 'hunter2'", f"{syntax}create connection_x password 'hunter2'"),
        _failed("SELECT * FROM jdbc_table", "refused: jdbc:mysql://h/d?user=u&password=hunter2"),
        _failed("SELECT 1", "[X_Y] Filter (password#12 = hunter2)"),
        _failed("SELECT '" + "x" * 300_000, f"{syntax}"),
    ]
    shown = [kept(one, literals=True).message for one in quoting]
    assert all(message is not None and SECRET not in message for message in shown)
    assert shown[0] is not None
    assert shown[0].startswith("[PARSE_SYNTAX_ERROR]")
    harmless = "[UNRESOLVED_COLUMN] A column with name `pasword` cannot be resolved. == SQL == SELECT pasword"
    assert kept(_failed("SELECT pasword", harmless), literals=True).message == harmless


def test_a_statement_with_a_secret_has_it_in_no_part_of_its_record() -> None:
    condition = f"d.password = '{SECRET}'"
    one = scan(cause=f"the filter `{condition}` was not used", skip="NO_EQUALITY")
    two = scan()
    two.reducers[0].key_query = two.reducers[0].join = two.predicate = f"SELECT k FROM d WHERE {condition}"
    found = record(
        original=f"SELECT 1 WHERE {condition}", rewritten=f"SELECT 1 WHERE {condition}", scans=[one, two]
    )
    from_view = record(scans=[one, two], cause=condition)
    for each in (found, from_view):
        assert SECRET.encode() in msgspec.json.encode(each)
        assert SECRET.encode() not in msgspec.json.encode(kept(each, literals=True))


@pytest.mark.parametrize("module", [literals, redaction, secret_names, record_module])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
