import pytest
from support.parser_errors import PARSER, parser_error, status_error

from proxy.statements.parse_failures import parse_failure_of

TYPO = "SELEC 1"
SCRIPT = f"BEGIN INSERT INTO d VALUES (1); EXECUTE IMMEDIATE '{TYPO}'; END"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TYPO, parser_error(TYPO)),
        # Spark 3.5 has no error class for some.
        (TYPO, parser_error(TYPO).replace("[PARSE_SYNTAX_ERROR] ", "")),
        (f"{TYPO};\n\n", parser_error(f"{TYPO};")),
        (f"\t{TYPO}", parser_error(f"\t{TYPO}", position=1)),
        (f"-- a tool\n{TYPO}\n  FROM t", parser_error(f"-- a tool\n{TYPO}\n  FROM t", line=2)),
        (f"{TYPO}\r\n FROM t", parser_error(f"{TYPO}\r\n FROM t")),
        (f"{TYPO}\n^^^\n'\n== SQL ==\n'", parser_error(f"{TYPO}\n^^^\n'\n== SQL ==\n'")),
        (SCRIPT, parser_error(SCRIPT, position=7)),
        ("INSERT INTO d SELEC 1", parser_error("INSERT INTO d SELEC 1", position=14)),
        (f"SELEC '{'x' * 100_000}'", parser_error(f"SELEC '{'x' * 100_000}'")),
    ],
)
def test_a_text_that_is_quoted_as_a_whole_was_refused_as_a_whole(text: str, message: str) -> None:
    assert parse_failure_of(text)(message)
    assert parse_failure_of(text)(status_error(message))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TYPO, ""),
        (TYPO, "Error running query: java.io.IOException: no space left on device"),
        # Within a script, and by EXECUTE IMMEDIATE, as Spark 4 points to the place.
        (SCRIPT, parser_error(TYPO)),
        (SCRIPT, f"{PARSER}\n[PARSE_SYNTAX_ERROR] Syntax error.\n== SQL ==\n{TYPO}\n^^^^^^^\n"),
        (f"EXECUTE IMMEDIATE '{TYPO}'", parser_error(TYPO)),
        # Spark has replaced a part of the text, or was sent another one.
        ("SELEC ${x}", parser_error("SELEC 1")),
        ("SELECT 1", parser_error("SELECT 2")),
        # The message was cut, or does not quote.
        ("SELEC 1\nFROM t", parser_error(TYPO)),
        (TYPO, PARSER),
        (TYPO, f"{PARSER}\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'."),
        # A client's own words, by raise_error and SIGNAL.
        (TYPO, parser_error(TYPO).replace("catalyst.parser.ParseException", "SparkRuntimeException")),
        (
            TYPO,
            f"Error running query: [USER_RAISED_EXCEPTION] org.apache.spark.SparkException: {parser_error(TYPO)}",
        ),
        # What was analysed may have come as far as anything.
        (
            "INSERT INTO d SELECT x",
            "Error running query: [UNRESOLVED_COLUMN] org.apache.spark.sql.AnalysisException: x",
        ),
    ],
)
def test_any_other_failure_may_have_come_after_a_part_was_done(text: str, message: str) -> None:
    assert not parse_failure_of(text)(message)
    assert not parse_failure_of(text)(status_error(message))


def test_a_text_that_goes_on_behind_a_line_of_a_trace_is_not_taken_for_its_beginning() -> None:
    line = status_error("").splitlines()[1]
    message = parser_error(f"{TYPO}\n{line}\n DELETE FROM d")
    assert not parse_failure_of(TYPO)(message)
    assert not parse_failure_of(TYPO)(status_error(message))
