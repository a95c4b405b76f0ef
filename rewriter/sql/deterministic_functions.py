"""Names that may stand in a key query: functions that always answer the same for the same input.

Source: `deterministic` of the expressions registered in Spark 4.x's FunctionRegistry.scala. A name that is not
listed is unknown, and no key query uses it. These are left out on purpose: rand, randn, uuid, shuffle,
monotonically_increasing_id, input_file_name, the clock (now, current_timestamp, ..), first, last, any_value, and
user functions. Functions that the session fixes (current_date, current_user, ..) have a table of their own.

Functions that read the session's time zone, such as to_timestamp, are listed: a key query runs in the session of
the statement. Functions that Spark 3.5 lacks, such as try_to_date, are left out, but for dayname and monthname: a
user's own may have the name.
"""

from __future__ import annotations

_STRING = """
    ascii base64 bin bit_length btrim char char_length character_length chr concat concat_ws contains
    elt endswith find_in_set format_number format_string hex initcap instr lcase left len length levenshtein
    locate lower lpad ltrim md5 octet_length overlay position regexp regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rpad
    rtrim sha sha1 sha2 soundex space split split_part startswith string substr substring substring_index to_char
    to_number to_varchar translate trim try_to_number ucase unbase64 unhex upper
"""
_NUMBER = """
    abs bigint bround cbrt ceil ceiling decimal double exp factorial float floor greatest int least ln log log10
    log2 mod negative pmod positive pow power rint round sign signum smallint sqrt tinyint try_add try_divide
    try_multiply try_subtract width_bucket
"""
_DATE = """
    add_months date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract hour last_day make_date minute
    month monthname months_between next_day quarter second to_date trunc unix_date weekday weekofyear year
"""
# unix_timestamp is the clock without arguments: see `WITH_ARGUMENTS`.
_TIMESTAMP = """
    convert_timezone from_unixtime from_utc_timestamp make_dt_interval make_interval make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_ym_interval timestamp timestamp_micros timestamp_millis
    timestamp_seconds timestampadd timestampdiff to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp try_to_timestamp unix_micros unix_millis unix_seconds unix_timestamp
"""
_CONDITIONAL = """
    boolean cast coalesce decode equal_null if ifnull isnotnull isnull nanvl nullif nvl nvl2 try_cast
"""
# Sets keep the order of their first elements, and maps that of their entries.
_NESTED = """
    array array_contains array_distinct array_except array_intersect array_join array_max array_min array_position
    array_remove array_size array_union arrays_overlap cardinality element_at get get_json_object
    json_array_length map map_contains_key map_keys map_values named_struct sequence size slice sort_array
    str_to_map struct try_element_at
"""

DETERMINISTIC_FUNCTIONS = frozenset((_STRING + _NUMBER + _DATE + _TIMESTAMP + _CONDITIONAL + _NESTED).split())

# Functions that read the clock where they are called without arguments.
WITH_ARGUMENTS = frozenset({"unix_timestamp"})

# Functions that are Spark's only with a unit as their first argument: Spark's grammar has them, its registry does
# not. Without a unit they are a user's own.
WITH_UNIT = frozenset({"timestampadd", "timestampdiff"})
UNITS = frozenset(
    """
    year quarter month week day dayofyear hour minute second millisecond microsecond
    """.split()
)

# Words of the grammar that a filter may have beside functions and columns. Types are here for CAST.
_GRAMMAR = """
    and or not in is null between like ilike rlike regexp escape true false case when then else end as div
    distinct from date interval year quarter month week day hour minute second years quarters months weeks days
    hours minutes seconds millisecond milliseconds microsecond microseconds dow doy dayofweek dayofyear yearofweek
    leading trailing both to string boolean tinyint smallint short int integer bigint long byte float real double
    decimal dec numeric timestamp timestamp_ltz timestamp_ntz
"""

FILTER_WORDS = frozenset(_GRAMMAR.split())

# Words behind which a parenthesis may open although they are no function.
WORDS_BEFORE_PARENTHESIS = frozenset(
    "and or not in is between like rlike case when then else decimal dec numeric on where having from join by as"
    " using union all select distinct exists over".split()
)

# Words of a whole query that may stand in a small side's text, if its clauses choose the same rows in the next run
# (`rewriter.semijoins.certain_rows`). TABLESAMPLE is left out, and so are sums and averages: the order of their
# terms can differ.
QUERY_WORDS = FILTER_WORDS | frozenset(
    """
    select where join inner outer left right full cross semi anti on using group by having union all with
    order limit offset asc desc nulls first last over partition
    """.split()
)

# Window functions that are the same for all rows that are equal in their order.
RANKS = frozenset({"rank", "dense_rank"})
DETERMINISTIC_AGGREGATES = frozenset({"max", "min", "count", "count_if", "bool_and", "bool_or", "every"})

# Functions that make several rows of one.
GENERATORS = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer"})

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

# Functions that a filter, that a whole query, and that a view may call.
FILTER_FUNCTIONS = DETERMINISTIC_FUNCTIONS | SESSION_FUNCTIONS.keys()
QUERY_FUNCTIONS = FILTER_FUNCTIONS | DETERMINISTIC_AGGREGATES | RANKS | GENERATORS
VIEW_FUNCTIONS = DETERMINISTIC_FUNCTIONS | DETERMINISTIC_AGGREGATES | RANKS | GENERATORS

# Functions that Spark reads without parentheses where a name is no column (LiteralFunctionResolution.scala).
LITERAL_FUNCTIONS = frozenset(
    "current_date current_timestamp current_time localtimestamp current_user session_user user".split()
)

# Functions that make a text which their literals do not show. Functions that change the case are not among them.
TEXT_MAKERS = frozenset(
    """
    array_join base64 btrim char chr concat concat_ws date_format dayname format_string from_unixtime
    get_json_object hex left lpad ltrim md5 monthname overlay regexp_extract regexp_extract_all regexp_replace
    regexp_substr repeat replace reverse right rpad rtrim sha sha1 sha2 soundex split split_part str_to_map substr
    substring substring_index to_char to_varchar translate trim unbase64 unhex
    """.split()
)

# Functions in whose text stand no letters but those of their literals, if their numbers are whole.
KEEPS_LETTERS = frozenset(
    """
    add_months array array_join btrim cast ceil coalesce concat concat_ws curdate current_date date date_add
    date_format date_sub date_trunc dateadd day dayofmonth dayofweek dayofyear floor from_unixtime if ifnull
    last_day lcase left lower lpad ltrim make_date month next_day nvl overlay quarter regexp_extract regexp_replace
    repeat replace reverse right rpad rtrim split split_part string substr substring substring_index timestamp
    timestampadd to_char to_date to_timestamp to_varchar translate trim trunc ucase upper weekday weekofyear year
    """.split()
)

# Of those, the functions with a pattern, which shows names for some of its letters.
DATE_FORMATTERS = frozenset({"date_format", "from_unixtime", "to_char", "to_varchar"})

# Strings that Spark reads as the clock when they are cast to a date or a timestamp (SpecialDatetimeValues). All
# but `now` may have a time zone behind them (SparkDateTimeUtils.extractSpecialValue).
CLOCK_WORDS = frozenset({"now", "today", "yesterday", "tomorrow"})
