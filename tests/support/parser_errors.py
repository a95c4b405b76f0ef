"""Errors of Spark's parser, as Spark Thrift Server words them."""

PARSER = "Error running query: [PARSE_SYNTAX_ERROR] org.apache.spark.sql.catalyst.parser.ParseException: "


def parser_error(text: str, line: int = 1, position: int = 0) -> str:
    """The message about a text that the parser refuses at a place."""
    lines = text.split("\n")
    quoted = [*lines[:line], f"{'-' * position}^^^", *lines[line:]]
    what = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601"
    return f"{PARSER}\n{what} (line {line}, pos {position})\n\n== SQL ==\n" + "\n".join(quoted) + "\n"


def status_error(message: str) -> str:
    """The same error in an operation's status: behind a class, and before a trace, whose cause has it again."""
    cause = message.removeprefix("Error running query: [PARSE_SYNTAX_ERROR] ")
    return (
        f"org.apache.hive.service.cli.HiveSQLException: {message}\n"
        "\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServerErrors$.runningQueryError"
        "(HiveThriftServerErrors.scala:43)\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
        f"Caused by: {cause}\n"
        "\tat org.apache.spark.sql.catalyst.parser.AbstractParser.parse(parsers.scala:106)\n\t... 16 more\n"
    )
