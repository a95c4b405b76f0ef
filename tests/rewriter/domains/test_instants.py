"""Timestamps as numbers and as literals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter import UnreadableKeyError
from rewriter.domains.instants import CERTAIN_MAX, CERTAIN_MIN, micros_of_local_time, micros_text
from rewriter.domains.literals import key_expression, key_of_answer, literal


@given(st.integers(CERTAIN_MIN, CERTAIN_MAX))
def test_a_local_time_is_read_as_it_is_written(micros: int) -> None:
    text = micros_text(micros)
    assert micros_of_local_time(text) == micros
    # Spark leaves out zeros at the end.
    assert micros_of_local_time(text.rstrip("0").rstrip(".") if "." in text else text) == micros


@pytest.mark.parametrize(
    "text", ["", "2026-02-30 00:00:00", "+10000-01-01 00:00:00", "2026-01-01", "2026-01-01 00:00:00Z"]
)
def test_other_texts_are_no_local_times(text: str) -> None:
    assert micros_of_local_time(text) is None


def test_instants_are_written_with_their_zone_and_local_times_without() -> None:
    assert literal("timestamp", 1_500_000) == "TIMESTAMP'1970-01-01 00:00:01.500000+00:00'"
    assert literal("timestamp_ntz", 1_500_000) == "TIMESTAMP_NTZ'1970-01-01 00:00:01.500000'"


@pytest.mark.parametrize("type_name", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    "value", [CERTAIN_MIN - 1, CERTAIN_MAX + 1, True, "2026-01-01 00:00:00"], ids=["old", "far", "boolean", "text"]
)
def test_a_time_whose_calendar_is_not_certain_has_no_literal(type_name: str, value: int | str) -> None:
    with pytest.raises(UnreadableKeyError):
        _ = literal(type_name, value)


def test_keys_arrive_as_the_session_cannot_change_them() -> None:
    assert key_expression("timestamp", "d.at") == "unix_micros(d.at)"
    assert key_expression("timestamp_ntz", "d.at") == "CAST(d.at AS STRING)"
    assert key_of_answer("timestamp", 7) == 7
    assert key_of_answer("timestamp_ntz", "1970-01-01 00:00:01.5") == 1_500_000
    assert key_of_answer("timestamp_ntz", None) is None
    for value in (7, "now"):
        with pytest.raises(UnreadableKeyError):
            _ = key_of_answer("timestamp_ntz", value)
