"""Tests whether a statement's result depends on Spark's tasks: on numbers or chance by task, or on row order.

A task reads the files that Spark packed for it, so other files, or fewer splits, mean other tasks. A result in SQL
is a multiset of rows, whatever task read them. But some functions count within a task, or draw from a generator
that each task seeds with its number. Two scans of one table get equal values from them, and statements rely on it;
Spark itself moves no filter past them. So a statement that calls one is not narrowed.

Other functions depend on the order of rows, which may differ from one run to the next. Rows that are left out of a
scan do not change the order of the others. Fewer splits may change it, so scans of statements with such functions
keep their splits. The last digits of a sum of floating-point numbers depend on the order too, but they differ from
run to run without us.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial
from itertools import pairwise

from sqlglot import TokenType, exp

from rewriter.sql.calls import Call
from rewriter.sql.deterministic_functions import QUERY_FUNCTIONS, TABLE_FUNCTIONS
from rewriter.sql.statement import Statement

# The first two count tasks and rows in them. The blocks of a file depend on how much there is to read.
_BY_TASK = frozenset(
    "monotonically_increasing_id spark_partition_id input_file_block_start input_file_block_length".split()
)

# Random values. Without any argument the seed differs each time, and no statement can rely on the value. We do not
# look which of the arguments is the seed.
_BY_SEED = frozenset("rand randn random randstr shuffle uniform uuid".split())

# Spark's own functions that can be called without arguments. Any other function without arguments is a user's: one
# that numbers rows, such as Hive's row_sequence(), has none.
_WITHOUT_ARGUMENTS = (_BY_TASK | _BY_SEED).union(
    """
    array arrays_zip concat count cume_dist curdate current_catalog current_database current_date
    current_path current_schema current_time current_timestamp current_timezone current_user dense_rank e
    grouping_id input_file_name localtime localtimestamp make_dt_interval make_interval make_ym_interval map
    map_concat mode named_struct now percent_rank pi rank row_number session_user
    struct unix_timestamp user version
    """.split()
)

# Fields of `_metadata`, in views too, with the values of the functions of these names.
_BLOCKS = frozenset({"file_block_start", "file_block_length"})

# TRANSFORM (..) USING 'cat', which may be a raw string.
_SCRIPTS = frozenset((TokenType.USING, kind) for kind in (TokenType.STRING, TokenType.RAW_STRING))

# Functions that take the first value, or one of equals, or approximate by the values before. The functions of the
# last line may remember anything; the name of a row's file is a variable of the task.
_BY_ORDER = frozenset(
    """
    any_value array_agg collect_list collect_set collect_union first first_value lag last last_value lead listagg
    max_by min_by mode nth_value ntile row_number string_agg
    approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine histogram_numeric hll_sketch_agg
    hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
    kll_sketch_agg_double kll_sketch_agg_float percentile_approx theta_intersection_agg theta_sketch_agg
    theta_union_agg tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer
    input_file_name java_method reflect try_reflect
    """.split()
)

# Functions that answer the same in any task. A user's function may count the rows of its task, and an aggregate
# of a user's may depend on their order.
_KNOWN = QUERY_FUNCTIONS.union(
    """
    approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count_if covar_pop covar_samp
    current_timestamp every exists filter grouping grouping_id kurtosis max mean median min now percentile
    skewness some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance
    """.split()
)

# Spark's own functions from 4.0 on, where a user's function may be written in SQL. None of them reads a table.
_OF_SPARK = (_KNOWN | _BY_TASK | _BY_SEED | _BY_ORDER | _WITHOUT_ARGUMENTS).union(
    """
    aes_encrypt aggregate array_sort assert_true binary bitmap_construct_agg bitmap_or_agg collate
    count_min_sketch forall from_avro from_protobuf hll_sketch_estimate hll_union inline inline_outer
    json_tuple map_filter map_zip_with percentile_cont percentile_disc raise_error reduce regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy session_window stack to_avro
    to_protobuf transform transform_keys transform_values window window_time zip_with
    """.split()
)

# Hints by which a statement says how many tasks it wants, and of which rows.
_CHOOSING = frozenset({"coalesce", "repartition", "repartition_by_range", "rebalance"})


def word_of_tasks(statement: Statement) -> str | None:
    """A word by which values of the statement depend on which rows each task reads; None if none does."""
    for call in statement.calls.values():
        if call.name in _BY_TASK or (call.name in _BY_SEED and call.has_arguments):
            return f"{call.name}(..)"
        if not call.has_arguments and _is_another(_WITHOUT_ARGUMENTS, call):
            return f"{call.name}()"
    # A sample is drawn from a seed that it may name, and a script is run by each task for all of its rows.
    words = {token.text.lower() for token in statement.tokens if token.token_type is not TokenType.STRING}
    found = sorted(words & (_BLOCKS | {"repeatable"}))
    if found:
        return found[0]
    kinds = (token.token_type for token in statement.tokens)
    return None if _SCRIPTS.isdisjoint(pairwise(kinds)) else "TRANSFORM .. USING"


def called(statement: Statement, names: AbstractSet[str]) -> str | None:
    """The first of these functions that the statement calls; None if it calls none of them."""
    return next((call.name for call in statement.calls.values() if call.name in names), None) if names else None


def depends_on_row_order(statement: Statement) -> bool:
    """True if the result may depend on the order in which rows are read."""
    if any(call.name in _BY_ORDER for call in statement.calls.values()):
        return True
    if any(_counts_rows(frame) for frame in statement.find_all(exp.WindowSpec)):
        return True
    is_sampled = any(token.token_type is TokenType.TABLE_SAMPLE for token in statement.tokens)
    return is_sampled or any(_takes_any_rows(query) for query in statement.find_all(exp.Query))


def chooses_tasks(statement: Statement) -> bool:
    """True if the statement says by a hint how many tasks it wants, or sorts the rows of each by SORT BY."""
    if any(query.args.get("sort") for query in statement.find_all(exp.Query)):
        return True
    hints = (hint for hints in statement.find_all(exp.Hint) for hint in hints.expressions)
    return any(_name_of_hint(hint) in _CHOOSING for hint in hints)


def calls_unknown_functions(statement: Statement) -> bool:
    """True if a function may be a user's, or is one of Spark's that may count tasks or rows."""
    return any(map(partial(_is_another, _KNOWN), statement.calls.values()))


def calls_own_functions(statement: Statement) -> bool:
    """True if a function may be a user's. One that is written in SQL, from Spark 4 on, may read any table."""
    return any(map(partial(_is_another, _OF_SPARK), statement.calls.values()))


def _is_another(known: AbstractSet[str], call: Call) -> bool:
    """True if a call may be that of another function. A user's table function may have any name."""
    return not call.is_bare or call.name not in (TABLE_FUNCTIONS if call.makes_table else known)


def _name_of_hint(hint: exp.Expr) -> str:
    name = hint.sql_name() if isinstance(hint, exp.Func) and not isinstance(hint, exp.Anonymous) else hint.name
    return name.lower()


def _takes_any_rows(query: exp.Expr) -> bool:
    """True if a query takes a number of rows without an order. A sort may leave equal rows in any order too."""
    return bool(query.args.get("limit") or query.args.get("offset")) and not query.args.get("order")


def _counts_rows(frame: exp.WindowSpec) -> bool:
    """True if a window's frame ends so many rows away: rows of equal order may stand in any order."""
    ends = frame.args.get("start"), frame.args.get("end")
    return str(frame.args.get("kind")).upper() == "ROWS" and ends != ("UNBOUNDED", "UNBOUNDED")
