"""Functions and forms that are taken to be null where an operand is are null on Spark, operand by operand."""

from collections.abc import Iterator
from functools import partial

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from support.null_propagating_calls import FORMS, LETS_NULL_PASS, calls

from rewriter.sql.null_logic import NULL_PROPAGATING_NAMES, is_always_null
from rewriter.sql.statement import parse_tree

ARITIES = range(1, 5)
# A null that Spark cannot compute before it runs.
NULL_OF = "if(id < 0, {}, NULL)"


@pytest.fixture(params=[True, False], ids=["ansi", "not ansi"])
def spark(request: pytest.FixtureRequest, local_spark: SparkSession) -> SparkSession:
    """Both ways of casting."""
    local_spark.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    return local_spark


def nulls_shown(spark: SparkSession, expressions: list[str]) -> list[bool]:
    shown = ", ".join(f"({expression}) IS NULL" for expression in expressions)
    return list(spark.sql(f"SELECT {shown} FROM range(1)").collect()[0])


def test_every_call_is_null_on_spark(spark: SparkSession) -> None:
    texts = []
    for name, operands in calls():
        for index, operand in enumerate(operands):
            if not operand.startswith("["):
                others = [text.strip("[]") for text in operands]
                others[index] = NULL_OF.format(operand)
                texts.append(f"{name}({', '.join(others)})")
    assert [t for t, is_null in zip(texts, nulls_shown(spark, texts), strict=True) if not is_null] == []


def test_every_form_is_null_on_spark(spark: SparkSession) -> None:
    null = "if(id < 0, 1, NULL)"
    texts = []
    for form in FORMS:
        for index in ("{1}", "{2}"):
            if index in form:
                typed = "DATE'2026-01-02'" if "INTERVAL" in form else "1"
                texts.append(form.replace(index, null.replace("1", typed)).replace("{1}", "1").replace("{2}", "1"))
    assert [t for t, is_null in zip(texts, nulls_shown(spark, texts), strict=True) if not is_null] == []


def test_conditions_that_let_null_pass_are_true_for_it_on_spark(spark: SparkSession) -> None:
    for condition in LETS_NULL_PASS:
        text = condition.replace("{1}", "n")
        assert (
            spark.sql(f"SELECT 1 FROM (SELECT if(id < 0, 1, NULL) AS n FROM range(1)) WHERE {text}").count() == 1
        )


def claims() -> Iterator[tuple[str, int, int]]:
    """The names that sqlglot reads as something that is null where an operand is, with numbers of operands."""
    named = {*Spark.Parser.FUNCTIONS, *Spark.Parser.FUNCTION_PARSERS, *NULL_PROPAGATING_NAMES}
    for name in sorted({name.lower() for name in named}):
        for count in ARITIES:
            tree = parse_tree(f"SELECT {name}({', '.join(f'c{i}' for i in range(count))})")
            call = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
            for index in range(count):
                if call is not None and is_always_null(call, partial(is_named, f"c{index}")):
                    yield name, count, index


def is_named(name: str, column: exp.Column) -> bool:
    return column.name == name


def test_no_other_function_of_sparks_is_taken_to_be_null(local_spark: SparkSession) -> None:
    known = {(name, len(ops), i) for name, ops in calls() for i, op in enumerate(ops) if op[0] != "["}
    # Their names are words of Spark's grammar, and forms have them.
    words = {"and", "or", "if", "nvl", "nvl2", "ifnull", "nullif", "extract"}
    for name, count, index in claims():
        if (name, count, index) not in known and name not in words:
            with pytest.raises((AnalysisException, ParseException)) as raised:
                _ = local_spark.sql(f"SELECT {name}({', '.join(['NULL'] * count)})").schema
            assert raised.value.getCondition() in {
                "UNRESOLVED_ROUTINE",
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                "PARSE_SYNTAX_ERROR",
            }, (name, count, index)
