"""The check in the clause of a MERGE, without a server: what counts as a key that was not asked for."""

import pytest

from rewriter import KeyRanges, Keys, KeySet, SkipReason, parse
from rewriter.predicates.merge_clause import KEYS_CHANGED, check_of_row, message
from rewriter.predicates.splice import CheckClause, rewritten_text
from rewriter.semijoins.key_query import KeyColumn, key_set_query
from rewriter.semijoins.merge_check import MergeCheck
from rewriter.semijoins.reducer import Reducer

MERGE = "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT *"
CLAUSE = MERGE.index("WHEN")
OF_SOURCE = MergeCheck(CLAUSE, "INSERT *", {"a": "s.a", "b": "s.b"}, ())


def check(columns: list[KeyColumn], keys: Keys, word: str = "") -> str:
    names = ("a", "b")[: len(columns)]
    query = key_set_query(source="s", keys=[f"s.{name}" for name in names], columns=columns, rows_max=10)
    return check_of_row([Reducer(names, "t.a = s.a", query)], keys.cover(names), OF_SOURCE, word)


@pytest.mark.parametrize(
    ("column", "keys", "condition"),
    [
        (KeyColumn("date"), KeySet(("date",), ()), "(s.a) IS NOT NULL AND (FALSE) IS NOT TRUE"),
        (
            KeyColumn("string"),
            KeySet(("string",), (("a",), ("b",))),
            "(s.a) IS NOT NULL AND ((s.a) IN ('a', 'b')) IS NOT TRUE",
        ),
        (
            KeyColumn("tinyint"),
            KeySet(("tinyint",), ((1,),)),
            "(s.a) IS NOT NULL AND (s.a) BETWEEN -128Y AND 127Y AND ((s.a) IN (1Y)) IS NOT TRUE",
        ),
        (KeyColumn("bigint"), KeyRanges("bigint", ()), "(s.a) IS NOT NULL AND (FALSE) IS NOT TRUE"),
        # `t.a <=> s.x` beside `t.a = s.a`: null is no key of the latter.
        (
            KeyColumn("int", null_safe=True),
            KeyRanges("int", ((1, 5),), nullable=True),
            (
                "(s.a) IS NOT NULL AND (s.a) BETWEEN -2147483648 AND 2147483647"
                " AND (((s.a) BETWEEN 1 AND 5 OR (s.a) IS NULL)) IS NOT TRUE"
            ),
        ),
    ],
)
def test_what_counts_as_a_new_key_is_what_could_match(column: KeyColumn, keys: Keys, condition: str) -> None:
    assert f" OR ({condition}))" in check([column], keys)


def test_pairs_are_looked_for_as_pairs() -> None:
    columns = [KeyColumn("int"), KeyColumn("string", null_safe=True)]
    text = check(columns, KeySet(("int", "string"), ((1, "x"), (2, None))))
    assert "((s.a) IN (1) AND (s.b) IN ('x')) OR ((s.a) IN (2) AND (s.b) IS NULL)" in text


def test_the_message_has_a_word_that_no_data_can_guess_and_is_not_in_the_text() -> None:
    text = check([KeyColumn("int")], KeySet(("int",), ((1,),)), word="0fb3")
    assert message("0fb3") == f"{KEYS_CHANGED} (0fb3)"
    assert "raise_error(concat('starpruner: ', 'the keys have changed since they were read (0fb3)'))" in text
    assert KEYS_CHANGED not in text


@pytest.mark.parametrize("text", ["(TRUE) OR (TRUE)", "(TRUE", "TRUE", "(TRUE; TRUE)", "(1))", "(')"])
def test_a_check_that_could_break_up_what_is_around_it_is_not_taken(text: str) -> None:
    statement = parse(MERGE, chars_max=1_000)
    assert not isinstance(statement, SkipReason)
    assert rewritten_text(statement, [CheckClause(CLAUSE, "(TRUE)", "INSERT *")]) is not None
    assert rewritten_text(statement, [CheckClause(CLAUSE, text, "INSERT *")]) is None
