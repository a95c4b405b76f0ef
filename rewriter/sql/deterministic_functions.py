"""Names that may stand in a key query: functions that always answer the same for the same input.

Source: `deterministic` of the expressions registered in Spark's FunctionRegistry.scala. A test compares the list
with what Spark 4.3 says, and has the reasons why some functions are left out that Spark calls deterministic: the
clock, encryption with a random start, errors, lambdas. A name that is not listed is unknown, and no key query uses
it: rand, uuid, input_file_name, first, any_value, and user functions. Functions that the session fixes
(current_date, current_user, ..) have a table of their own.

Functions that read the session's time zone, such as to_timestamp, are listed: a key query runs in the session of
the statement. So are functions that older servers lack, such as try_to_date (`NEWER_FUNCTIONS`): there a user's
own function may have the name.
"""

from __future__ import annotations

_STRING = """
    aes_decrypt ascii base64 bin bit_length btrim char char_length character_length chr collation concat
    concat_ws contains crc32 elt encode endswith find_in_set format_number format_string from_base32 hash hex
    hmac initcap instr is_valid_utf8 jaro_winkler_similarity lcase left len length levenshtein locate lower
    lpad ltrim luhn_check make_valid_utf8 mask md5 octet_length overlay parse_url position printf quote regexp
    regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr
    repeat replace reverse right rpad rtrim sentences sha sha1 sha2 soundex space split split_part startswith
    string substr substring substring_index to_base32 to_binary to_char to_number to_varchar translate trim
    try_aes_decrypt try_parse_url try_to_binary try_to_number try_url_decode try_validate_utf8 ucase unbase64
    unhex upper url_decode url_encode validate_utf8 xxhash64
"""
_NUMBER = """
    abs acos acosh asin asinh atan atan2 atanh bigint bit_count bit_get bitmap_bit_position
    bitmap_bucket_number bitmap_count bround cbrt ceil ceiling conv cos cosh cot csc decimal degrees double e
    exp expm1 factorial float floor getbit greatest hypot int isnan least ln log log10 log1p log2 mod negative
    nullifzero pi pmod positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign
    signum sin sinh smallint sqrt tan tanh tinyint try_add try_divide try_mod try_multiply try_subtract
    vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize width_bucket
    zeroifnull
"""
_DATE = """
    add_months date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff datepart day dayname dayofmonth dayofweek dayofyear extract hour last_day make_date minute month
    monthname months_between next_day quarter second to_date trunc try_to_date unix_date weekday weekofyear
    year
"""
# unix_timestamp is the clock without arguments: see `WITH_ARGUMENTS`.
_TIMESTAMP = """
    convert_timezone from_unixtime from_utc_timestamp make_dt_interval make_interval make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_ym_interval timestamp timestamp_micros timestamp_millis
    timestamp_nanos timestamp_seconds timestampadd timestampdiff to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_unix_timestamp time_bucket to_utc_timestamp try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_to_timestamp unix_micros unix_millis unix_seconds
    unix_timestamp
"""
_CONDITIONAL = """
    boolean cast coalesce decode equal_null if ifnull isnotnull isnull nanvl nullif nvl nvl2 try_cast typeof
    version
"""
# Sets keep the order of their first elements, and maps that of their entries.
_NESTED = """
    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_union arrays_overlap arrays_zip cardinality element_at flatten get map map_concat map_contains_key
    map_entries map_from_arrays map_from_entries map_keys map_values named_struct sequence size slice
    sort_array str_to_map struct try_element_at
"""
# JSON, CSV, XML, variants and geometries.
_FORMATS = """
    from_csv from_json from_xml get_json_object is_valid_variant is_variant_null json_array_length
    json_object_keys parse_json schema_of_csv schema_of_json schema_of_variant schema_of_xml st_asbinary
    st_geogfromwkb st_geomfromwkb st_setsrid st_srid to_csv to_json to_variant_object to_xml try_parse_json
    try_variant_array_append try_variant_get try_variant_insert try_variant_set variant_array_append
    variant_delete variant_get variant_insert variant_set variant_strip_nulls xpath xpath_boolean xpath_double
    xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
"""

DETERMINISTIC_FUNCTIONS = frozenset(
    (_STRING + _NUMBER + _DATE + _TIMESTAMP + _CONDITIONAL + _NESTED + _FORMATS).split()
)

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

# Words of a whole query that may stand in a small side's text, if its clauses choose the same rows in the next run
# (`rewriter.semijoins.certain_rows`). TABLESAMPLE is left out, and so are sums and averages: the order of their
# terms can differ.
QUERY_WORDS = FILTER_WORDS | frozenset(
    """
    select where join inner outer left right full cross semi anti on using group by having union all with
    order limit offset asc desc nulls first last over partition lateral view
    """.split()
)

# Window functions that are the same for all rows that are equal in their order.
RANKS = frozenset({"rank", "dense_rank"})
DETERMINISTIC_AGGREGATES = frozenset("any bool_and bool_or count count_if every max min some".split())

# Functions that make several rows of one.
GENERATORS = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer"})
# Spark's functions that may stand in a FROM and read no table.
TABLE_FUNCTIONS = GENERATORS.union(
    "inline inline_outer json_tuple range stack variant_explode variant_explode_outer".split()
)

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

# The clock, and functions that take a date first, to which Spark casts it: `to_date(now())` is `current_date()`.
# All calls in a statement read one instant (ComputeCurrentTime in Spark's finishAnalysis.scala).
CLOCKS = frozenset({"now", "current_timestamp"})
TAKE_DAYS = frozenset(
    """
    add_months date date_add date_sub day dayofmonth dayofweek dayofyear last_day month next_day quarter to_date
    trunc weekday weekofyear year
    """.split()
)

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
    aes_decrypt array_join base64 btrim char chr collation concat concat_ws conv date_format dayname encode
    format_string from_base32 from_csv from_json from_unixtime from_xml get_json_object hex hmac json_object_keys
    left lpad ltrim make_valid_utf8 mask md5 monthname overlay parse_json parse_url printf quote regexp_extract
    regexp_extract_all regexp_replace regexp_substr repeat replace reverse right rpad rtrim schema_of_csv
    schema_of_json schema_of_variant schema_of_xml sentences sha sha1 sha2 soundex split split_part st_asbinary
    str_to_map substr substring substring_index to_base32 to_binary to_char to_csv to_json to_varchar
    to_variant_object to_xml translate trim try_aes_decrypt try_parse_json try_parse_url try_to_binary
    try_url_decode try_validate_utf8 try_variant_array_append try_variant_get try_variant_insert try_variant_set
    typeof unbase64 unhex url_decode url_encode validate_utf8 variant_array_append variant_delete variant_get
    variant_insert variant_set variant_strip_nulls version xpath xpath_string
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

# The functions among those with a pattern, some of whose letters stand for names.
DATE_FORMATTERS = frozenset({"date_format", "from_unixtime", "to_char", "to_varchar"})

# Strings that Spark reads as the clock when they are cast to a date or a timestamp (SpecialDatetimeValues). All
# but `now` may have a time zone behind them (SparkDateTimeUtils.extractSpecialValue).
CLOCK_WORDS = frozenset({"now", "today", "yesterday", "tomorrow"})

# Names that `rewriter` takes to be those of Spark's functions, and that Spark 3.3 does not have. On a server that
# lacks one, the name is that of a user's own function, which may do anything. Source: `SHOW SYSTEM FUNCTIONS`.
NEWER_FUNCTIONS = frozenset(
    """
    any_value approx_top_k approx_top_k_accumulate approx_top_k_combine array_append array_compact
    array_insert array_prepend bitmap_bit_position bitmap_bucket_number bitmap_count collation
    collect_union convert_timezone curdate current_path current_schema current_time date_diff
    dateadd datepart dayname equal_null from_base32 from_xml get hll_sketch_agg hll_union_agg hmac
    is_valid_utf8 is_valid_variant is_variant_null jaro_winkler_similarity kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float len listagg localtime localtimestamp luhn_check make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 mask median mode monthname nullifzero parse_json
    quote randstr regexp_count regexp_instr regexp_substr schema_of_variant
    schema_of_xml session_user st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid
    string_agg theta_intersection_agg theta_sketch_agg theta_union_agg time_bucket timestamp_nanos
    to_base32 to_char to_timestamp_ltz to_timestamp_ntz to_varchar to_variant_object to_xml
    try_aes_decrypt try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
    try_mod try_parse_json try_parse_url try_reflect try_to_date try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_array_append try_variant_get try_variant_insert try_variant_set
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer uniform url_decode
    url_encode user validate_utf8 variant_array_append variant_delete variant_get variant_insert
    variant_set variant_strip_nulls vector_cosine_similarity vector_inner_product vector_l2_distance
    vector_norm vector_normalize zeroifnull
    """.split()
)
