"""The functions of key queries, and the strings that are the clock, held to what Spark says of them."""

import re
from contextlib import closing

import pytest
from pyhive import hive

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from rewriter.sql.deterministic_functions import (
    _GRAMMAR,
    CLOCK_WORDS,
    KEEPS_LETTERS,
    NEWER_FUNCTIONS,
    QUERY_FUNCTIONS,
    TAKE_DAYS,
    TEXT_MAKERS,
    WITH_UNIT,
)
from rewriter.sql.repeatable import _BLANKS, _SPECIAL
from rewriter.sql.task_dependence import _BY_ORDER, _KNOWN, _WITHOUT_ARGUMENTS

# Some functions have a dozen, and the first ones tell enough.
EXAMPLES_MAX = 3

# Functions of Spark's grammar, which its registry does not have.
OF_THE_GRAMMAR = WITH_UNIT | {"try_cast"}

AROUND = (
    "{}",
    " {}\t",
    "{} UTC",
    "{}UTC",
    "{}+01:00",
    "{} +1",
    "{}\t Europe/Oslo",
    "{}%",
    "{} is here",
    "{}.",
    "{}s",
    "x{}",
)


# Functions that Spark calls deterministic, and that no key query may use.
LEFT_OUT = {
    "the clock, which is another one in the next statement": (
        "current_time current_timestamp localtime localtimestamp now"
    ),
    "of the session, and no key query returns it": "current_path",
    "begins with random bytes, unless it is given others": "aes_encrypt",
    "raises an error": "assert_true raise_error",
    "takes a lambda, whose names look like columns": (
        "aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys"
        " transform_values zip_with"
    ),
    "makes equal texts of which Spark may show either": "collate",
    "no function as it is written, but a word or an operator": (
        "and between div ilike in like not or rlike when ! % & * + - / < << <= <=> = == > >= >> >>> ^ | ~"
    ),
}
# The example of a function in DESCRIBE FUNCTION EXTENDED.
EXAMPLE = re.compile(r"> SELECT (.*?);\s*$", re.MULTILINE | re.DOTALL)
# An aggregate, a window function, a function of tables, and a generator have a FROM or an OVER in theirs.
OF_ROWS = re.compile(r"\b(?:FROM|OVER)\b")
# A condition of a join has to be deterministic, and so may be an expression of any type in it.
ASKED = "DESCRIBE QUERY SELECT 1 FROM (SELECT 1 AS a) LEFT JOIN (SELECT 1 AS b) ON ({}) IS NULL AND a = b"


@pytest.fixture(scope="module")
def described(spark: ThriftServer) -> dict[str, str]:
    """Spark's own functions, with what it says of each."""
    with closing(connect(spark.endpoint)) as session:
        names = [str(row[0]) for row in run(session, "SHOW SYSTEM FUNCTIONS")]
        rows = {name: run(session, f"DESCRIBE FUNCTION EXTENDED `{name}`") for name in names}
    return {name: "\n".join(str(row[0]) for row in told) for name, told in rows.items()}


def test_every_function_that_is_not_newer_is_one_of_each_server(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as session:
        names = {str(row[0]) for row in run(session, "SHOW SYSTEM FUNCTIONS")}
    trusted = QUERY_FUNCTIONS | _WITHOUT_ARGUMENTS | _BY_ORDER | _KNOWN
    assert trusted - NEWER_FUNCTIONS - names <= set(_GRAMMAR.split()) | OF_THE_GRAMMAR


def test_functions_that_take_days_take_that_of_the_clock(spark: ThriftServer) -> None:
    further = {"add_months": ", 1", "date_add": ", 1", "date_sub": ", 1", "next_day": ", 'MON'", "trunc": ", 'MM'"}
    calls = {f"{name}({{}}{further.get(name, '')})" for name in TAKE_DAYS} | {"CAST({} AS DATE)"}
    with closing(connect(spark.endpoint)) as session:
        # A day behind or ahead of that of UTC, in one of the two at any time.
        for zone in ("-18:00", "+18:00"):
            run(session, f"SET TIME ZONE '{zone}'")
            for clock in ("now()", "current_timestamp()"):
                equal = [f"{call.format(clock)} <=> {call.format('current_date()')}" for call in sorted(calls)]
                assert run(session, f"SELECT {', '.join(equal)}") == [(True,) * len(calls)]


def test_every_function_is_spark_s_own_and_deterministic(described: dict[str, str]) -> None:
    assert described.keys() >= QUERY_FUNCTIONS - OF_THE_GRAMMAR
    listed = QUERY_FUNCTIONS & described.keys()
    assert {name for name in listed if "non-deterministic" in described[name].lower()} == set()


def test_every_function_that_spark_calls_deterministic_is_listed_or_left_out_for_a_reason(
    spark: ThriftServer, described: dict[str, str]
) -> None:
    with closing(connect(spark.endpoint)) as session:
        told = {name: is_deterministic(session, text) for name, text in described.items()}
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    deterministic = {name for name, is_so in told.items() if is_so}
    assert deterministic - QUERY_FUNCTIONS == left_out
    chance = {name for name, is_so in told.items() if is_so is False}
    assert chance >= {"rand", "uuid", "shuffle", "input_file_name", "monotonically_increasing_id"}
    assert chance.isdisjoint(QUERY_FUNCTIONS)


def is_deterministic(session: hive.Connection, text: str) -> bool | None:
    """What Spark makes of the first example that can stand in a condition; None where there is none."""
    for example in EXAMPLE.findall(text)[:EXAMPLES_MAX]:
        if OF_ROWS.search(example) is not None:
            continue
        try:
            _ = run(session, ASKED.format(example))
        except hive.OperationalError as error:
            if "INVALID_NON_DETERMINISTIC_EXPRESSIONS" in str(error):
                return False
        else:
            return True
    return None


def test_texts_that_functions_make_of_literals_are_not_trusted_to_be_no_clock() -> None:
    """Each of those that may show letters that no literal of theirs shows: `conv(48818122, 10, 36)` is TODAY."""
    assert TEXT_MAKERS <= QUERY_FUNCTIONS
    assert {"aes_decrypt", "conv", "encode", "printf", "typeof", "url_decode", "xpath_string"} <= TEXT_MAKERS
    assert not TEXT_MAKERS & {"conv", "encode", "printf", "typeof", "url_decode"} & KEEPS_LETTERS


@pytest.mark.parametrize("word", sorted(CLOCK_WORDS | {"epoch", "nowhere"}))
def test_every_string_that_spark_takes_for_the_clock_is_known(spark: ThriftServer, word: str) -> None:
    texts = [around.format(written) for around in AROUND for written in (word, word.title())]
    casts = ", ".join(f"TRY_CAST('{text}' AS TIMESTAMP) IS NOT NULL" for text in texts)
    with closing(connect(spark.endpoint)) as session:
        (row,) = run(session, f"SELECT {casts}")
    read = {text for text, is_read in zip(texts, row, strict=True) if is_read}
    assert bool(read) is (word != "nowhere")
    for text in read if word != "epoch" else ():
        found = _SPECIAL.fullmatch(text.strip(_BLANKS))
        assert found is not None, text
        assert found["word"].lower() in CLOCK_WORDS, text
