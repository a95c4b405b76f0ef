"""Names that may stand in a key query: functions that always answer the same for the same input.

Source: `deterministic` of the expressions registered in Spark 4.x's FunctionRegistry.scala. A name that is not
listed is unknown, and no key query uses it. These are left out on purpose: rand, randn, uuid, shuffle,
monotonically_increasing_id, input_file_name, the clock (now, current_timestamp, ..), first, last, any_value, and
user functions. Functions that the session fixes (current_date, current_user, ..) have a table of their own.
"""

from __future__ import annotations

_STRING = """
    ascii base64 bin bit_length btrim char char_length character_length chr concat concat_ws contains
    endswith format_number format_string hex initcap instr lcase left length levenshtein locate lower lpad
    ltrim md5 octet_length overlay position regexp_count regexp_extract regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rpad rtrim sha sha1 sha2 soundex space
    split_part startswith substr substring substring_index to_char to_number translate trim ucase unbase64
    unhex upper
"""
_NUMBER = """
    abs bround cbrt ceil ceiling exp factorial floor greatest least ln log log10 log2 mod negative pmod
    positive pow power round sign signum sqrt
"""
_DATE = """
    add_months date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff day dayname dayofmonth dayofweek dayofyear extract hour last_day make_date minute month
    monthname months_between next_day quarter second to_date trunc unix_date weekday weekofyear year
"""
_CONDITIONAL = """
    cast coalesce if iff ifnull isnotnull isnull nanvl nullif nvl nvl2 try_cast
"""

DETERMINISTIC_FUNCTIONS = frozenset((_STRING + _NUMBER + _DATE + _CONDITIONAL).split())

# Words of the grammar that a filter may have beside functions and columns. Types are here for CAST.
_GRAMMAR = """
    and or not in is null between like ilike rlike regexp escape true false case when then else end as div
    distinct from date interval year quarter month week day hour minute second years quarters months weeks days
    hours minutes seconds leading trailing both to string boolean tinyint smallint short int integer bigint long
    byte float real double decimal dec numeric
"""

FILTER_WORDS = frozenset(_GRAMMAR.split())

# Words behind which a parenthesis may open although they are no function.
WORDS_BEFORE_PARENTHESIS = frozenset(
    "and or not in is between like rlike case when then else decimal dec numeric on where having from join by as"
    " exists"
    " using union all select distinct".split()
)

# Words of a whole query that may stand in a small side's text. ORDER, LIMIT and TABLESAMPLE are left out: they can
# choose other rows in the next run. Sums and averages are left out too: the order of their terms can differ.
QUERY_WORDS = FILTER_WORDS | frozenset(
    """
    select where join inner outer left right full cross semi anti on using group by having union all
    """.split()
)
DETERMINISTIC_AGGREGATES = frozenset({"max", "min", "count"})

# Functions whose answer is fixed within one statement, but not across two, with their types: a key query returns
# their values, and the narrowed scan assumes them. current_timestamp and now differ each time, so they stay
# unknown.
SESSION_FUNCTIONS = {
    "current_catalog": "string",
    "current_database": "string",
    "current_date": "date",
    "current_schema": "string",
    "current_timezone": "string",
    "current_user": "string",
    "curdate": "date",
    "session_user": "string",
    "user": "string",
}

# Session functions that may stand without parentheses in a key query, where no column has the name.
BARE_FUNCTIONS = frozenset({"current_date", "current_user"})

# Functions that a filter, and that a whole query, may call.
FILTER_FUNCTIONS = DETERMINISTIC_FUNCTIONS | SESSION_FUNCTIONS.keys()
QUERY_FUNCTIONS = FILTER_FUNCTIONS | DETERMINISTIC_AGGREGATES

# Functions that Spark reads without parentheses where a name is no column (LiteralFunctionResolution.scala).
LITERAL_FUNCTIONS = frozenset(
    "current_date current_timestamp current_time localtimestamp current_user session_user user".split()
)

# Functions that make a text which their literals do not show. Functions that change the case or concatenate are
# not among them: `rewriter.sql.repeatable` joins literals itself.
TEXT_MAKERS = frozenset(
    """
    btrim char chr concat_ws date_format format_string left lpad ltrim overlay regexp_extract regexp_replace
    regexp_substr repeat replace reverse right rpad rtrim split_part substr substring substring_index to_char
    translate trim unbase64 unhex
    """.split()
)

# Strings that Spark reads as the clock when they are cast to a date or a timestamp (SpecialDatetimeValues).
CLOCK_WORDS = frozenset({"now", "today", "yesterday", "tomorrow"})
