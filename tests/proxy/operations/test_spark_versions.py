"""Answers of several versions of Spark, in the words that these servers gave."""

import pytest
from support.spark_3_views import spark_3_view

from proxy.operations.query import FailureKind, QueryFailed, Rows
from proxy.operations.spark_versions import (
    is_filter_refused,
    older_view_text_sql,
    output_columns,
    read_older_view_text,
    with_catalog,
)
from rewriter import TableName, ViewText

VIEW = TableName(("Recent",))
TEXT = "SELECT ds, g\nFROM days -- View Text: all"


def shown(*rows: tuple[str, str, bool, str]) -> Rows:
    return Rows((), rows, 0.0)


def read(information: str, *others: tuple[str, str, bool, str]) -> ViewText | None:
    return read_older_view_text(shown(("", "recent", True, information), *others), VIEW)


def test_a_temporary_views_text_is_read_whole_beside_a_table_of_its_name() -> None:
    expected = ViewText(TEXT, ("spark_catalog", "shop"), ("ds", "g"), is_temporary=True)
    information = spark_3_view("recent", "ds, g", TEXT, "spark_catalog.shop")
    assert read(information) == expected
    assert read(information, ("shop", "recent", False, "Table: recent\nType: MANAGED\n")) == expected
    assert read(f"Database: global_temp\n{information}") == expected


@pytest.mark.parametrize(
    "information",
    [
        "",
        "Table: recent\nType: VIEW\nSchema: root\n",
        spark_3_view("older", "ds"),
        spark_3_view("recent", "a, `b`` c`"),
        spark_3_view("recent", "ds", namespace="spark_catalog.`a b`"),
        # Its text, or a comment of its maker, is like the lines around it.
        spark_3_view("recent", "ds", spark_3_view("recent", "ds")),
        spark_3_view("recent", "ds").replace("View Text", "Comment: x\nType: VIEW\nView Text"),
        spark_3_view("recent", "ds").replace("Schema: root", "Table Properties: [a=b]\nSchema: root"),
        # Spark 4 tells the owner; there the text is asked for as JSON.
        spark_3_view("recent", "ds").replace("Created Time", "Owner: ann\nCreated Time"),
    ],
)
def test_a_temporary_view_that_may_be_read_in_two_ways_has_no_text(information: str) -> None:
    assert read(information) is None


def test_two_views_whose_names_differ_by_case_have_no_text() -> None:
    information = spark_3_view("recent", "ds")
    assert read(information) is not None
    assert read(information, ("", "RECENT", True, information)) is None
    assert read_older_view_text(QueryFailed(FailureKind.REJECTED, "no", 0.0), VIEW) is None


@pytest.mark.parametrize(
    ("parts", "sql"),
    [
        (("days",), "SHOW TABLE EXTENDED LIKE 'days'"),
        (("global_temp", "days"), "SHOW TABLE EXTENDED IN global_temp LIKE 'days'"),
        (("shop", "days"), None),
        (("spark_catalog", "global_temp", "days"), None),
        (("d*|s",), None),
        (("d'; DROP",), None),
    ],
)
def test_only_a_plain_name_of_a_temporary_view_is_asked_about(parts: tuple[str, ...], sql: str | None) -> None:
    assert older_view_text_sql(TableName(parts)) == sql


@pytest.mark.parametrize("listed", ["", "[]", "[`a, b`]", "[```a```, `a`]", "[`a`, b`]"])
def test_output_columns_that_are_not_certain_are_none(listed: str) -> None:
    assert output_columns(listed) == ()


def test_a_catalog_that_is_named_stays_and_one_is_added_only_to_a_table_of_the_session_catalog() -> None:
    named = {"Catalog": "lake", "Database": "shop", "Table": "sales"}
    assert with_catalog(named) == named
    assert with_catalog({"Name": "lake.shop.sales"}) == {"Name": "lake.shop.sales"}
    assert with_catalog({"Table": "recent"}) == {"Table": "recent"}, "a temporary view"


OLDER = "Caught Hive MetaException attempting to get partition metadata by filter from Hive. You can set"
NEWER = "[INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER] Failed to get partition metadata by filter from"
SPARK = "org.apache.spark"
REFUSALS = {
    "3.3": f"java.lang.RuntimeException:  {OLDER}",
    "3.4 and 3.5": f"[_LEGACY_ERROR_TEMP_2193] {SPARK}.SparkRuntimeException: {OLDER}",
    "4.0": f"[_LEGACY_ERROR_TEMP_3065] {SPARK}.sql.AnalysisException: {SPARK}.SparkRuntimeException: {OLDER}",
    "4.3": f"[_LEGACY_ERROR_TEMP_3065] {SPARK}.sql.AnalysisException: {SPARK}.SparkRuntimeException: {NEWER}",
}


@pytest.mark.parametrize("message", REFUSALS.values(), ids=REFUSALS)
def test_a_filter_that_the_metastore_refuses_is_known_by_the_words_of_each_version(message: str) -> None:
    assert is_filter_refused(f"Error running query: {message}")
    assert not is_filter_refused("Error running query: [DIVIDE_BY_ZERO] Division by zero.")
