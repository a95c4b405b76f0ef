"""Filters on partitions as SQL text: read, refused with a sentence, and written again."""

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.partition_strategies import filters

from rewriter.partitions.filter_text import FilterError, filter_sql, read_filter
from rewriter.partitions.filter_tree import PartitionFilter
from rewriter.partitions.key_encoding import PartitionKeys

COLUMNS, TYPES = ("y", "m", "s", "d", "b", "n"), ("int", "bigint", "string", "date", "boolean", "decimal(5,2)")
KEYS = PartitionKeys(COLUMNS, TYPES)
# The types whose literals are written as they are read.
READ_AGAIN = filters(("y", "m", "b"), ("int", "bigint", "boolean"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Y = 2020 AND m IN (1, 2L)", "y = 2020 AND m IN (1, 2)"),
        ("5 < y OR '7' >= y", "y > 5 OR y <= 7"),
        ("y BETWEEN -1 AND 5", "y >= -1 AND y <= 5"),
        ("NOT (y BETWEEN 1 AND 5)", "y < 1 OR y > 5"),
        ("y NOT IN (1, NULL)", "y != 1 AND y != NULL"),
        ("NOT y <=> 3", "y IS NULL OR y != 3"),
        ("NOT (y <=> NULL)", "y IS NOT NULL"),
        ("s LIKE 'a%' AND s NOT LIKE '%z'", "s LIKE 'a%' AND s NOT LIKE '%z'"),
        ("NOT s NOT LIKE 'a!_%' ESCAPE '!'", "s LIKE 'a!_%' ESCAPE '!'"),
        ("d >= '2026-01-01' AND d < DATE'2026-02-01'", "d >= '2026-01-01' AND d < '2026-02-01'"),
        ("b = true", "b = TRUE"),
        ("n < 1.5 OR n = -2", "n < '1.5' OR n = '-2'"),
        ("NOT (y = 1 OR (m = 2 AND NOT s = 'x'))", "y != 1 AND (m != 2 OR s = 'x')"),
        ("s LIKE NULL OR NULL OR FALSE", "FALSE OR FALSE OR FALSE"),
        ("TRUE -- all", "TRUE"),
    ],
)
def test_a_filter_is_read_with_its_negations_at_the_comparisons(text: str, read: str) -> None:
    assert filter_sql(read_filter(text, KEYS)) == read


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The filter is empty."),
        ("y =", "The filter is not understood as a condition of Spark SQL."),
        ("y = 1 GROUP BY y", "The filter is not understood as a condition of Spark SQL."),
        ("q = 1", "q is not a partition column; the columns are y, m, s, d, b, n."),
        ("t.y = 1", "Write y without the name of the table."),
        ("s = 20200101", "s is of type string: 20200101 is not certainly a value of it."),
        ("d = '2020-1-1'", "d is of type date: '2020-1-1' is not certainly a value of it."),
        ("y = 99999999999", "y is of type int: 99999999999 is not certainly a value of it."),
        ("n = 1.555", "n is of type decimal(5,2): 1.555 is not certainly a value of it."),
        ("y = m", "y is of type int: m is not certainly a value of it."),
        ("y + 1 = 2", "y + 1 is no comparison of a partition column with a literal."),
        ("upper(s) = 'A'", "UPPER(s) is no comparison of a partition column with a literal."),
        ("y IN (SELECT 1)", "y IN (SELECT 1) is no comparison of a partition column with a literal."),
        ("s ILIKE 'a'", "s ILIKE 'a' is no comparison of a partition column with a literal."),
        ("s LIKE ANY ('a', 'b')", "ANY ('a', 'b') is no comparison of a partition column with a literal."),
        ("y", "y is no comparison of a partition column with a literal."),
        ("y IS TRUE", "y IS TRUE is no comparison of a partition column with a literal."),
        ("y LIKE '1%'", "y is of type int: LIKE is for texts."),
        ('s = "a"', "A double quote or a backslash means another thing under other settings: write none."),
        ("(" * 5_000 + "y = 1" + ")" * 5_000, "The filter is nested too deeply."),
    ],
)
def test_any_other_text_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FilterError) as refused:
        read_filter(text, KEYS)
    assert str(refused.value) == sentence


def test_a_filter_of_many_terms_needs_no_depth() -> None:
    assert (
        filter_sql(read_filter(" OR ".join(f"y = {year}" for year in range(20_000)), KEYS)).count("OR") == 19_999
    )


@given(READ_AGAIN)
def test_a_filter_that_is_written_is_read_as_itself(condition: PartitionFilter) -> None:
    written = filter_sql(condition)
    # Without their sign these digits are no bigint.
    assume(str(-(1 << 63)) not in written)
    assert filter_sql(read_filter(written, KEYS)) == filter_sql(read_filter(f"NOT NOT ({written})", KEYS))


@given(st.text(max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    with suppress(FilterError):
        read_filter(text, KEYS)
