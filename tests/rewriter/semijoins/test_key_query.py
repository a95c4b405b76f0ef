"""Key queries without a server: what they ask for, and how their answers are read."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter import KeyRanges, KeySet, SkipReason, UnreadableKeyError
from rewriter.domains.literals import Key, key_expression, key_of_answer, literal
from rewriter.semijoins.key_query import KeyColumn, KeySetQuery, key_set_query
from rewriter.semijoins.range_query import key_ranges_query

DAY = KeyColumn("date")


def days_since_1970(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def of_days(*, is_scalar: bool = False) -> KeySetQuery:
    return key_set_query(source="d", keys=["d.k"], columns=[DAY], rows_max=9, is_scalar=is_scalar)


def test_days_are_asked_for_by_their_number_and_all_else_as_it_is() -> None:
    asked = key_set_query(
        source="d", keys=["d.k", "d.s"], columns=[DAY, KeyColumn("string")], rows_max=9
    ).sql_with_repeats
    assert asked == (
        "SELECT unix_date(d.k) AS key1, typeof(d.k) AS type1, d.s AS key2, typeof(d.s) AS type2 FROM d LIMIT 10"
    )
    types = ["tinyint", "smallint", "int", "bigint", "string", "boolean", "decimal(5,2)"]
    assert [key_expression(type_name, "k") for type_name in types] == ["k"] * len(types)


def test_the_ends_of_ranges_of_days_are_asked_for_by_their_number() -> None:
    asked = key_ranges_query(source="d", key="d.k", column=DAY, ranges_max=3)
    assert "unix_date(min(key)) AS low, typeof(min(key)) AS low_type, unix_date(max(key)) AS high" in asked.sql
    low, high = map(days_since_1970, ("1500-03-01", "9999-12-31"))
    assert asked.read([(low, "date", high, "date")]) == KeyRanges("date", (("1500-03-01", "9999-12-31"),))


def test_the_day_that_a_query_assumes_is_asked_for_by_its_number() -> None:
    asked = key_set_query(source="d", keys=["d.k"], columns=[DAY], filters=["d.k < current_date()"], rows_max=9)
    assert asked.sql.endswith("UNION ALL SELECT NULL, NULL, unix_date(current_date())")
    today = days_since_1970("2026-11-22")
    found = asked.read([(today - 1, "date", today), (None, None, today)])
    assert found == KeySet(("date",), (("2026-11-21",),), (("current_date()", "DATE'2026-11-22'"),))


@given(st.dates())
def test_a_day_arrives_as_it_is_by_the_one_calendar_that_spark_counts_by(day: date) -> None:
    assert key_of_answer("date", (day - date(1970, 1, 1)).days) == day.isoformat()


@pytest.mark.parametrize("days", [-719_163, 2_932_897, 1 << 31, -(1 << 31), 1 << 70, True, "2026-01-01", 1.0])
def test_what_is_no_day_of_the_years_1_to_9999_makes_the_keys_unreadable(days: object) -> None:
    with pytest.raises(UnreadableKeyError):
        _ = key_of_answer("date", days)
    assert of_days().read([(0, "date"), (days, "date")]) is SkipReason.UNREADABLE_KEY


@pytest.mark.parametrize("day", ["1582-10-05", "1582-10-10", "1582-10-14", "1582-10-15", "1582-10-24"])
def test_a_day_on_which_calendars_differ_has_no_literal(day: str) -> None:
    with pytest.raises(UnreadableKeyError):
        _ = literal("date", day)


@pytest.mark.parametrize("day", ["0001-01-01", "1500-03-01", "1582-10-04", "1582-10-25", "9999-12-31"])
def test_any_other_day_has_one(day: str) -> None:
    assert literal("date", day) == f"DATE'{day}'"


def test_a_key_of_another_type_is_not_used() -> None:
    assert of_days().read([("2026-01-01", "string")]) is SkipReason.KEY_TYPE_CHANGED


def test_a_scalar_subquery_is_asked_for_its_rows_as_they_are_and_for_two_of_them() -> None:
    asked = of_days(is_scalar=True)
    assert asked.sql == "SELECT unix_date(d.k) AS key, typeof(d.k) AS type FROM d LIMIT 2"
    assert (asked.sql_with_repeats, asked.answer_rows_max) == ("", 2)


@pytest.mark.parametrize("rows", [[0, 0], [0, 1], [0, None], [None, None]])
def test_a_second_row_of_a_scalar_subquery_is_none_of_its_keys(rows: list[Key | None]) -> None:
    answer = [(row, "date") for row in rows]
    assert of_days(is_scalar=True).read(answer) is SkipReason.SCALAR_SUBQUERY_ROWS


def test_one_row_of_a_scalar_subquery_is_its_key_and_no_row_or_null_is_none() -> None:
    found = [of_days(is_scalar=True).read(rows) for rows in ([(0, "date")], [], [(None, "date")])]
    assert found == [KeySet(("date",), (("1970-01-01",),)), KeySet(("date",), ()), KeySet(("date",), ())]


def test_a_scalar_subquery_that_reads_the_session_has_a_row_more_in_its_answer() -> None:
    asked = key_set_query(
        source="d", keys=["d.k"], columns=[DAY], filters=["d.u = current_user()"], rows_max=9, is_scalar=True
    )
    assert asked.answer_rows_max == 3
    assert asked.read([(0, "date", "me"), (None, None, "me")]) == KeySet(
        ("date",), (("1970-01-01",),), (("current_user()", "'me'"),)
    )
