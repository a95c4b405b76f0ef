"""Descriptions of Delta tables, in the words of Delta 4.2 on Spark 4.1."""

from typing import Any

import pytest
from support.delta_answers import described

from proxy.session.catalog.describe import read_description
from proxy.session.table_lookup import _as_named, at_version
from rewriter import Column, TableFacts, TableName
from rewriter.catalog.prunable import fact_refusal, key_refusal
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.vocabulary.skip_reason import SkipReason

COLUMNS = ("k", "int"), ("at", "timestamp"), ("x", "double"), ("ds", "string")


def read(
    name: str = "spark_catalog.shop.f",
    columns: tuple[tuple[str, str], ...] = COLUMNS,
    **told: Any,
) -> TableFacts:
    facts = read_description(described(name, *columns, **told))
    assert facts is not None
    return facts


def test_a_delta_table_can_be_narrowed_by_each_column_whose_bounds_are_known() -> None:
    facts = read()
    assert facts.delta == DeltaFacts(("ds",))
    assert facts.full_name == TableName(("spark_catalog", "shop", "f"))
    assert not facts.partition_columns
    assert fact_refusal(facts) is None
    refusals = {column: key_refusal(facts, Column(column, of), of) for column, of in COLUMNS}
    assert refusals["k"] is None
    assert refusals["ds"] is None
    assert refusals["at"] is not None
    assert refusals["at"].reason is SkipReason.TYPE_REFUSED
    assert refusals["x"] is not None


def test_scans_of_delta_carry_no_hint_and_no_number_of_splits() -> None:
    facts = read()
    assert (facts.takes_file_hints, facts.packs_files) == (False, False)


@pytest.mark.parametrize("name", ["delta.`file:/lake/f`", "delta.`/lake/f`", "spark_catalog.shop.`f.g`"])
def test_a_table_that_has_no_plain_name_in_a_catalog_is_left_alone(name: str) -> None:
    refusal = fact_refusal(read(name))
    assert refusal is not None
    assert refusal.reason is SkipReason.PROVIDER


def test_a_table_without_any_column_that_can_have_keys_is_left_alone() -> None:
    assert fact_refusal(read(columns=(("x", "double"),))) is SkipReason.NOT_A_PARTITION_COLUMN


def test_a_name_that_the_description_does_not_have_may_be_a_version() -> None:
    assert _as_named(read(), TableName(("shop", "F"))) == read()
    assert _as_named(read(), TableName(("shop", "f@v1"))).delta is None


@pytest.mark.parametrize(
    ("properties", "may_generate"),
    [
        ("delta.minReaderVersion=1,delta.minWriterVersion=2", False),
        ("delta.enableChangeDataFeed=true,delta.minWriterVersion=4", True),
        ("delta.minWriterVersion=6", True),
        ("delta.feature.appendOnly=supported,delta.minWriterVersion=7", False),
        ("delta.feature.generatedColumns=supported,delta.minWriterVersion=7", True),
        # A property of the owner's that looks like one of Delta's.
        ("a=delta.minWriterVersion=2,delta.minWriterVersion=4", True),
        ("a=delta.minWriterVersion=7,delta.minWriterVersion=4", True),
        ("", True),
    ],
)
def test_a_table_whose_partition_columns_may_be_generated_is_left_alone(
    properties: str, *, may_generate: bool
) -> None:
    facts = read(properties=properties)
    assert (facts.delta is None, facts.may_generate_partitions) == (may_generate, may_generate)
    assert facts.partition_columns == (("ds",) if may_generate else ()), "as a small side it is a partitioned one"
    assert (fact_refusal(facts) is None) is not may_generate
    whole = read(properties=properties, partitioned=())
    assert whole.delta == DeltaFacts()
    assert not whole.may_generate_partitions
    of_then = at_version(whole, whole.columns, None)
    assert of_then.may_generate_partitions is may_generate, "it may have been partitioned then"
    by_path = read("delta.`/lake/f`", partitioned=(), properties=properties)
    assert by_path.may_generate_partitions is may_generate
