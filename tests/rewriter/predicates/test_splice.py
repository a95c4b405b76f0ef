"""Insertions: cut out again, they leave the client's text, and a wrong one is not taken."""

import pytest

from rewriter import SkipReason, Statement, parse
from rewriter.files.file_index import FileFacts, file_hint
from rewriter.predicates.splice import FurtherConjunct, Narrowing, is_one_condition, rewritten_text

SQL = "SELECT x.id FROM db.f /* a */ x, f WHERE x.ds = f.ds"


def statement(sql: str = SQL) -> Statement:
    found = parse(sql, chars_max=10_000)
    assert not isinstance(found, SkipReason)
    return found


def narrowing(name: str, *, after: int = 0, alias: str | None = None, predicate: str = "TRUE") -> Narrowing:
    start = SQL.index(name, after)
    return Narrowing(start, start + len(name), alias, predicate)


def test_an_insertion_keeps_every_character_of_the_client() -> None:
    one, other = narrowing("db.f"), narrowing("f", after=SQL.index(", f"), alias="f", predicate="(ds = 'a')")
    text = rewritten_text(statement(), [other, one])
    assert text is not None
    assert "(SELECT * FROM db.f WHERE TRUE) /* a */ x, (SELECT * FROM f WHERE (ds = 'a')) AS f" in text
    for insertion in (one, other):
        text = text.replace(insertion.before, "", 1).replace(insertion.after, "", 1)
    assert text == SQL


def test_an_insertion_that_does_not_parse_is_not_taken() -> None:
    assert rewritten_text(statement(), [narrowing("db.f", predicate="((")]) is None


def test_an_insertion_that_changes_anything_else_is_not_taken() -> None:
    assert (
        rewritten_text(statement(), [narrowing("db.f", predicate="TRUE) y, (SELECT * FROM g WHERE TRUE")]) is None
    )


@pytest.mark.parametrize(
    "predicate",
    [
        *("", "(", ")", "(TRUE", "TRUE)", "(TRUE)) OR ((TRUE)", "TRUE OR TRUE", "ds = 'a'", "(ds = 'a", "'"),
        *("(TRUE) -- a", "(TRUE /* a */)", "(TRUE);", "(SELECT TRUE)", "(ds IN (SELECT 1))", "(TRUE) LIMIT (1)"),
        *("(TRUE) (TRUE)", "(TRUE) AND", "AND (TRUE)", "(TRUE) OR (TRUE)", "NOT (TRUE)", "(TRUE) AND NOT (TRUE)"),
        *(
            "_metadata.file_path NOT IN ('a')",
            "(_metadata.file_path NOT IN ('a')) OR (TRUE)",
            "(TRUE).a",
            "(TRUE).",
        ),
        *("(_metadata.file_path NOT IN ('a') -- ')", "(SELECT a.b)", "(a.b IN (SELECT c.d FROM e.f))", "(a.*)"),
    ],
)
def test_a_predicate_that_is_not_one_condition_by_itself_is_not_taken(predicate: str) -> None:
    assert not is_one_condition(predicate)
    assert rewritten_text(statement(), [narrowing("db.f", predicate=predicate)]) is None


def test_a_file_hint_is_one_condition_beside_others_whatever_the_paths_are_named() -> None:
    facts = (
        FileFacts(f"file:/t/{name}", 1, 2, None, {}, ())
        for name in ("a", "d's", "p=a%2525b", "é|;)--", "${x}", "\n")
    )
    text, named = file_hint(list(facts), 10_000)
    assert len(named) == 6
    predicate = f"(`k` IN (1)) AND ({text} OR typeof(`k`) <> 'int')"
    assert is_one_condition(predicate)
    assert predicate in (rewritten_text(statement(), [narrowing("db.f", predicate=predicate)]) or "")


def test_an_insertion_beside_a_table_is_not_taken() -> None:
    start = SQL.index("x.ds")
    assert rewritten_text(statement(), [Narrowing(start, start + 4, None, "TRUE")]) is None


def test_overlapping_insertions_are_not_taken() -> None:
    assert rewritten_text(statement(), [narrowing("db.f"), narrowing("f", after=SQL.index("db.f"))]) is None


BY_DATABASE = (
    "SELECT db.f.id FROM db.f JOIN db.d ON db.f.k = db.d.k WHERE (db.d.g = 1 OR db.d.g = 2) AND NOT db.f.m = 1"
)


def further(before: str, predicate: str = "(f.`k` IN (1))") -> FurtherConjunct:
    return FurtherConjunct(BY_DATABASE.index(before), predicate)


def test_a_further_conjunct_stands_before_a_conjunct_of_the_client() -> None:
    text = rewritten_text(statement(BY_DATABASE), [further("NOT"), further("db.f.k"), further("db.f.k", "(TRUE)")])
    assert text is not None
    assert "ON (f.`k` IN (1)) AND (TRUE) AND db.f.k = db.d.k" in text
    assert text.endswith("AND (f.`k` IN (1)) AND NOT db.f.m = 1")


@pytest.mark.parametrize("before", ["db.d.g = 1", "db.d.g = 2", "= db.d.k", "db.f.m", "db.f.id", "JOIN", "WHERE"])
def test_a_further_conjunct_that_is_none_is_not_taken(before: str) -> None:
    assert rewritten_text(statement(BY_DATABASE), [further(before)]) is None
