"""Spark refuses the texts that are changed, and takes the texts that are sent in their place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from test_skewed_by import BEGINNINGS, CLAUSES, CREATED, NOT_OURS, PIECES

from proxy.statements.skewed_by import skew_statement
from rewriter.sql.classify import first_word

ALTERED = [
    "ALTER TABLE db.t SKEWED BY (x) ON (30, 'a')",
    "ALTER TABLE t SKEWED BY (x, y) ON ((30, 'a'), (-1, 'b')) STORED AS DIRECTORIES",
    "ALTER TABLE t NOT SKEWED",
    "ALTER TABLE t NOT STORED AS DIRECTORIES",
]
REFUSED = [
    "ALTER TABLE t SET SKEWED LOCATION (30 = '/x')",
    "ALTER TABLE t PARTITION (ds = 'a') SET SKEWED LOCATION (30 = '/x')",
    "CREATE TABLE t (x DOUBLE) SKEWED BY (x) ON (1.5)",
    "CREATE TABLE t SKEWED BY (x) ON (1) AS SELECT 1 AS x",
]


@pytest.fixture(scope="module")
def parser(local_spark: SparkSession) -> Any:
    """Spark's parser of statements."""
    session: Any = local_spark
    return session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - Spark's own parser has no other door


def takes(parser: Any, text: str) -> bool:
    try:
        parser.parsePlan(text)
    except ParseException:
        return False
    return True


@pytest.mark.parametrize("text", [*(text.replace("<>", CLAUSES[3]) for text, _ in CREATED), *ALTERED])
def test_a_text_that_is_changed_was_refused_and_is_taken_now(parser: Any, text: str) -> None:
    found = skew_statement(text, first_word(text), len(text))
    assert found is not None
    assert not takes(parser, text)
    assert takes(parser, found.text), found.text


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_refused_with_a_sentence_was_refused_by_spark(parser: Any, text: str) -> None:
    found = skew_statement(text, first_word(text), len(text))
    assert found is not None
    assert found.refusal
    assert not takes(parser, text)


# Here Spark sees no clause: it stands in a comment or a string, or in a statement that is explained.
SEES_NONE = ("EXPLAIN", "CREATE TABLE t (x INT) --", "CREATE TABLE t (x INT) /* SKEWED")
LEFT_ALONE = [text for text in NOT_OURS if "SKEWED BY (x) ON (" in text and "'SKEWED" not in text]


@pytest.mark.parametrize("text", [text for text in LEFT_ALONE if not text.startswith(SEES_NONE)])
def test_a_text_that_is_left_alone_though_it_has_the_clause_is_refused_by_spark(parser: Any, text: str) -> None:
    assert not takes(parser, text), text


@given(st.sampled_from(BEGINNINGS), st.lists(PIECES, max_size=12))
def test_no_text_is_touched_that_spark_takes(parser: Any, beginning: str, pieces: list[str]) -> None:
    text = beginning + " ".join(pieces)
    if skew_statement(text, first_word(text), len(text)) is not None:
        assert not takes(parser, text), text
