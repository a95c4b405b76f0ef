"""What a statement shows of Spark's tasks, beyond the rows: numbers and chance by task, and the order of rows.

A task reads the files that Spark packed for it, so other files, or fewer splits, mean other tasks. To SQL a result
is a multiset of rows, whatever task read them. But some functions count within a task, or draw from a generator
that each task seeds with its number. To two scans of one table they answer alike, and statements rely on it; Spark
itself moves no filter past them. So where one is called, nothing is narrowed.

Others answer by the order in which rows come, of which nothing is promised from one run to the next. What is left
out of a scan leaves the order of the others as it was. Fewer splits may not, so these keep theirs. The last digits
of a sum of floating-point numbers depend on it too, and differ from run to run as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import TokenType, exp

from rewriter.sql.statement import Statement

# The first two count tasks and rows in them. How a file is cut into blocks depends on how much there is to read.
_BY_TASK = frozenset(
    "monotonically_increasing_id spark_partition_id input_file_block_start input_file_block_length".split()
)

# Chance. Without any argument the seed is another one each time, and nobody can rely on what comes of it; which of
# the arguments would be the seed is not looked into.
_BY_SEED = frozenset("rand randn random randstr shuffle uniform uuid".split())

# Spark's own that can be called without arguments, and words that empty parentheses stand behind.
# Any other function without arguments is a user's: one that numbers rows, such as Hive's row_sequence(), has none.
_WITHOUT_ARGUMENTS = (_BY_TASK | _BY_SEED).union(
    """
    array arrays_zip collations concat count cume_dist curdate current_catalog current_database current_date
    current_path current_schema current_time current_timestamp current_timezone current_user dense_rank e
    grouping_id input_file_name localtime localtimestamp make_dt_interval make_interval make_ym_interval map
    map_concat mode named_struct now percent_rank pi python_worker_logs rank row_number session_user sql_keywords
    struct unix_timestamp user version
    by cube in over rollup sets
    """.split()
)

# Of `_metadata`, in views too: what the functions of these names say.
_BLOCKS = frozenset({"file_block_start", "file_block_length"})

# TRANSFORM (..) USING 'cat', which may be a raw string.
_SCRIPTS = frozenset((TokenType.USING, kind) for kind in (TokenType.STRING, TokenType.RAW_STRING))

# Functions that take what comes first, or one of equals, or approximate by what they met before. Of the last line
# nobody but their maker knows what they remember; the name of a row's file stands in a variable of the task.
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


def depends_on_tasks(statement: Statement) -> bool:
    """Whether values of the statement depend on which rows each task reads."""
    calls = set(_calls(statement))
    if any(name in _BY_TASK or (name in _BY_SEED and has_arguments) for name, has_arguments in calls):
        return True
    if any(not has_arguments and _may_be_user_function(name) for name, has_arguments in calls):
        return True
    # A sample is drawn from a seed that it may name, and a script is run by each task for all of its rows.
    words = {token.text.lower() for token in statement.tokens if token.token_type is not TokenType.STRING}
    kinds = (token.token_type for token in statement.tokens)
    return not words.isdisjoint(_BLOCKS | {"repeatable"}) or not _SCRIPTS.isdisjoint(pairwise(kinds))


def depends_on_row_order(statement: Statement) -> bool:
    """Whether the result may depend on the order in which rows are read."""
    if any(name in _BY_ORDER for name, _ in _calls(statement)):
        return True
    is_sampled = any(token.token_type is TokenType.TABLE_SAMPLE for token in statement.tokens)
    return is_sampled or any(_takes_any_rows(query) for query in statement.tree.find_all(exp.Query))


def _may_be_user_function(name: str) -> bool:
    """Whether what is called without arguments is no function of Spark's. A parenthesis or a comma is no name."""
    return any(map(str.isalnum, name)) and name not in _WITHOUT_ARGUMENTS


def _takes_any_rows(query: exp.Expr) -> bool:
    """Whether it takes so many rows, whichever come first. Of those that a sort finds equal too many may come."""
    return bool(query.args.get("limit") or query.args.get("offset")) and not query.args.get("order")


def _calls(statement: Statement) -> Iterator[tuple[str, bool]]:
    """The names of all functions that are called, in lower case, each with whether there are arguments."""
    tokens = statement.tokens
    for name, parenthesis, inner in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if parenthesis.token_type is TokenType.L_PAREN:
            yield name.text.lower(), inner.token_type is not TokenType.R_PAREN
