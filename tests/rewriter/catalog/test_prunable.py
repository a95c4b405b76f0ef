"""Columns by whose keys a table can be narrowed, by the format of its files."""

from dataclasses import replace

import pytest

from rewriter import Column, SkipReason, TableFacts, TableName
from rewriter.catalog.prunable import key_refusal

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
