"""The functions of key queries, and the strings that are the clock, held to what Spark says of them."""

from contextlib import closing

import pytest

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from rewriter.sql.deterministic_functions import CLOCK_WORDS, QUERY_FUNCTIONS, WITH_UNIT
from rewriter.sql.repeatable import _BLANKS, _SPECIAL

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


def test_every_function_is_spark_s_own_and_deterministic(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as session:
        names = {str(row[0]) for row in run(session, "SHOW SYSTEM FUNCTIONS")}
        assert names >= QUERY_FUNCTIONS - OF_THE_GRAMMAR
        told = {name: run(session, f"DESCRIBE FUNCTION EXTENDED `{name}`") for name in QUERY_FUNCTIONS & names}
    assert {name for name, text in told.items() if "non-deterministic" in str(text).lower()} == set()


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
