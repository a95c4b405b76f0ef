"""Texts that Iceberg's procedure is given as constants: Spark reads them as they were, and finds no variables."""

import pytest

from pipeline.compaction.iceberg import constant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.t", "'db.t'"),
        ("it's", r"'it\u0027s'"),
        (r"s = 'a\b'", r"'s = \u0027a\u005cb\u0027'"),
        ("${x}\n", r"'\u0024{x}\u000a'"),
        ("ü\U0001f600", "'ü\U0001f600'"),
    ],
)
def test_what_quotes_escapes_and_variables_are_made_of_is_escaped(text: str, expected: str) -> None:
    assert constant(text) == expected
