"""Parts of statements over tables of many small files: expressions, aggregates, windows, filters and joins."""

NUMBERS = ("i", "n", "b", "d", "f", "z", "y", "m2", "m38")
TEXTS = ("s", "c")
SORTED = (*NUMBERS, *TEXTS, "t", "p")
# Columns of the derived tables below, by what may be done with them.
ALL = (*SORTED, "a", "e", "st", "mp")

# Aggregates of values that can be sorted, of numbers, and of any.
OF_SORTED = ("max({})", "min({})", "max(struct({}, i))", "min(array({}))", "count(DISTINCT {})")
OF_NUMBERS = (
    *("sum({})", "avg({})", "sum(DISTINCT {})", "avg(DISTINCT {})", "try_sum({})", "mean({})", "stddev({})"),
    *("var_pop({})", "corr({}, d)", "percentile({}, 0.5)", "median({})", "kurtosis({})", "skewness({})"),
    *("regr_slope({}, d)", "covar_samp(d, {})", "sum({} * 2)", "avg({} + 1)", "sum(-{})", "sum({} * m2)"),
    *("sum(CASE WHEN i > 0 THEN {} ELSE 0 END)", "sum(CAST({} AS DECIMAL(20,2)))", "sum(coalesce({}, 0))"),
    *("sum({} / 3)", "sum({} * 1.5D)", "sum({} * 1e0)", "max(0 / {})", "min(-{})", "max({} * -1.0D)"),
    *("sum(CAST({} AS DOUBLE))", "sum(if({} > 0, {}, NULL))", "sum({}) FILTER (WHERE i > 0)", "max(sign({}))"),
)
OF_ANY = ("count({})", "bool_or({} IS NULL)", "approx_count_distinct({})", "count_if({} IS NOT NULL)")
# These depend on the order of rows, or on tasks.
DEPENDING = (
    *("first({})", "last({})", "any_value({})", "first_value({}) FILTER (WHERE i > 0)", "collect_list({})"),
    *("collect_set({})", "array_agg({})", "max_by({}, i)", "min_by({}, n)", "mode({})", "`collect_list` ({})"),
    *("listagg(CAST({} AS STRING), ',')", "string_agg(CAST({} AS STRING))", "first({}, true)"),
    *("approx_percentile({}, 0.5)", "percentile_approx({}, 0.5)", "histogram_numeric({}, 2)"),
    "size(collect_list({}))",
)
ROW_DEPENDING = (
    *("monotonically_increasing_id()", "spark_partition_id()", "input_file_name()", "rand(3)", "rand()"),
    *("randn(1)", "uuid()", "shuffle(array(1, 2, 3))", "input_file_block_start()", "_metadata.file_name"),
)
ROW_EXPRESSIONS = (
    *("i + n", "i * 2", "d + f", "-z", "upper(s)", "concat(s, c)", "coalesce(s, 'x')", "CAST(d AS INT)", "i / 2"),
    *(
        "CASE WHEN i > 1 THEN z ELSE d END",
        "st.i",
        "st.z",
        "st.x",
        "a[0]",
        "e[1]",
        "mp['k']",
        "date_trunc('MONTH', t)",
    ),
    *("CAST(i AS DOUBLE)", "struct(i, d)", "named_struct('i', d, 'z', z)", "array(d, z)", "year(p)", "m2 * i"),
    *("greatest(z, 0.0D)", "round(d, 1)", "z", "d", "i", "s", "m38", "size(a)", "i > 1", "nullif(i, 2)", "c"),
)
WINDOWS = (
    *("rank()", "dense_rank()", "count(*)", "count({})", "max({})", "min({})", "sum({})", "avg({})", "sum(i)"),
    *("sum(m2)", "percentile({}, 0.5)"),
)
WINDOWS_DEPENDING = (
    *("row_number()", "lag({})", "lead({}, 2)", "first_value({})", "last_value({})", "nth_value({}, 2)"),
    *("ntile(3)", "collect_list({})", "any_value({})"),
)
FRAMES = (
    *("", "", "", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    *("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
)
FRAMES_DEPENDING = (
    *("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "rows 2 preceding"),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
)
# Of a file whose zeros are all negative, Parquet's dictionary filter skips the rows for `z = 0` (Spark 4.3): which
# they are depends on the files, and not on splits.
FILTERS = (
    *("i > 0", "n IS NOT NULL", "d < 1e15", "s IN ('a', 'A')", "p = '2026-01-01'", "z + 0 = 0", "y <> 1.5"),
    *(
        "i = (SELECT max(i) FROM other)",
        "i IN (SELECT i FROM other)",
        "NOT EXISTS (SELECT 1 FROM other o WHERE o.i = n)",
    ),
)
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN")
