"""Errors of Spark's parser, as Spark Thrift Server words them."""

PARSER = "Error running query: [PARSE_SYNTAX_ERROR] org.apache.spark.sql.catalyst.parser.ParseException: "


def parser_error(text: str, line: int = 1, position: int = 0) -> str:
    """The message about a text that the parser refuses at a place."""
    lines = text.split("\n")
    quoted = [*lines[:line], f"{'-' * position}^^^", *lines[line:]]
    what = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601"
    return f"{PARSER}\n{what} (line {line}, pos {position})\n\n== SQL ==\n" + "\n".join(quoted) + "\n"
