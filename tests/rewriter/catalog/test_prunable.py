"""Columns by whose keys a table can be narrowed, by the format of its files."""

from dataclasses import replace

import pytest

from rewriter import Column, SkipReason, TableFacts, TableName
from rewriter.catalog.prunable import fact_refusal, key_refusal

AT = Column("at", "timestamp")
FACTS = TableFacts((AT,), (), "parquet", full_name=TableName(("main", "shop", "f")), bucket_columns=("at",))


@pytest.mark.parametrize(
    ("provider", "refusal"),
    [("parquet", None), pytest.param("orc", SkipReason.TYPE_REFUSED, id="orc-TYPE_REFUSED")],
)
def test_times_are_found_in_parquet(provider: str, refusal: SkipReason | None) -> None:
    found = key_refusal(replace(FACTS, provider=provider, bucket_count=4), AT, "timestamp")
    assert getattr(found, "reason", found) is refusal


def test_no_times_are_keys_where_a_table_in_orc_may_be_sent_the_filter_too() -> None:
    found = key_refusal(replace(FACTS, bucket_count=4, is_beside_lost_times=True), AT, "timestamp")
    assert getattr(found, "reason", found) is SkipReason.TYPE_REFUSED


@pytest.mark.parametrize(
    ("provider", "cause"),
    [
        ("hudi", "which may keep a row in a partition of another value"),
        ("paimon", "its format is Paimon, whose partition pruning was not tried"),
        ("kudu", "its format is kudu"),
        ("", "its format is not told"),
    ],
)
def test_a_format_that_is_left_alone_is_named(provider: str, cause: str) -> None:
    found = fact_refusal(TableFacts((AT,), ("at",), provider))
    assert getattr(found, "reason", None) is SkipReason.PROVIDER
    assert cause in (getattr(found, "cause", None) or "")
