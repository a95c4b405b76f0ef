"""Keys as people write them."""

import pytest

from rewriter import UnreadableKeyError
from rewriter.domains.key_texts import key_of_text


@pytest.mark.parametrize(
    ("type_name", "text", "key"),
    [
        ("tinyint", "-128", -128),
        ("int", "+5", 5),
        ("bigint", " 9223372036854775807 ", 9223372036854775807),
        ("string", " 30 ", " 30 "),
        ("string", "", ""),
        ("boolean", "True", True),
        ("boolean", "FALSE", False),
        ("date", "2026-11-20", "2026-11-20"),
        ("decimal(4,2)", "1.5", "1.5"),
        ("decimal(4,2)", "-0099.25", "-0099.25"),
        ("decimal(4,0)", "7", "7"),
    ],
)
def test_a_text_is_read_as_a_key_of_its_type(type_name: str, text: str, key: object) -> None:
    assert key_of_text(type_name, text) == key


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("tinyint", "128"),
        ("int", ""),
        ("int", "ten"),
        ("int", "1_000"),
        ("int", "٣"),
        ("int", "1.0"),
        ("bigint", "9223372036854775808"),
        ("boolean", "yes"),
        ("date", "2026-02-30"),
        ("date", "today"),
        # Calendars differ on it.
        ("date", "1582-10-10"),
        ("decimal(4,2)", "100.00"),
        ("decimal(4,2)", "1.555"),
        ("decimal(4,2)", "1e1"),
        ("string", "\ufffd"),
    ],
)
def test_a_text_that_says_no_key_of_the_type_is_refused(type_name: str, text: str) -> None:
    with pytest.raises(UnreadableKeyError):
        key_of_text(type_name, text)
