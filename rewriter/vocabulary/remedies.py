"""Remedies: advice for each skip reason, as in the table of docs/coverage.md."""

from __future__ import annotations

from typing import Final

from rewriter.vocabulary.skip_reason import SkipReason

# In the words of docs/coverage.md, which a test compares; the page of the admin port shows them.
REMEDIES: Final[dict[SkipReason, str]] = {
    SkipReason.NOT_A_QUERY: "nothing",
    SkipReason.WRITES_WHAT_IT_READS: "nothing",
    SkipReason.TOO_LARGE_TO_REPEAT: "a shorter statement",
    SkipReason.MERGE_OFF: "name it",
    SkipReason.MERGE_UNCHECKED: "see writes",
    SkipReason.NO_MEMORY: "give the proxy more memory",
    SkipReason.SWITCHED_OFF: "`SET starpruner.enabled=true`",
    SkipReason.IN_SHADOW: "`SET starpruner.mode=rewrite`, or `rewrite.mode`",
    SkipReason.NO_JOIN_IN_TEXT: "a file index, if it filters a large table",
    SkipReason.DOES_NOT_PARSE: "simplify it; report it if Spark takes it",
    SkipReason.TOO_LARGE: "raise it, if a second of parsing is little for the statement",
    SkipReason.TOO_INTRICATE: "write it shorter: fewer tables in one FROM, fewer repeated conditions",
    SkipReason.SEVERAL_STATEMENTS: "send them one by one",
    SkipReason.SUBSTITUTION: "write the value",
    SkipReason.UNUSUAL_TEXT: "write it the usual way",
    SkipReason.QUOTING_SETTINGS: (
        "reset `spark.sql.ansi.doubleQuotedIdentifiers`, `spark.sql.parser.escapedStringLiterals` and the like"
    ),
    SkipReason.SEARCH_PATH: (
        "reset `spark.sql.defaultPath`, `SET PATH`, `spark.sql.functionResolution.sessionOrder`"
    ),
    SkipReason.OWN_FUNCTIONS: "a session without it, or a function of a database (`CREATE FUNCTION`)",
    SkipReason.SHARED_SESSION: "set it to false in Spark",
    SkipReason.SETTINGS_UNKNOWN: "wait a minute; look into Spark's log",
    SkipReason.NUMBERED_BY_TASK: "nothing",
    SkipReason.MISSING_FUNCTION: "call a function that the server has, or one by another name",
    SkipReason.NOT_VERIFIED: "report it, with the statement",
    SkipReason.DESCRIPTION_LATE: "nothing: one of the next statements asks again",
    SkipReason.SPLITS_UNKNOWN: "nothing: one of the next statements is read in fewer tasks",
    SkipReason.TABLES_UNSETTLED: "nothing",
    SkipReason.QUARANTINED: "nothing: it ends by itself; look into the log",
    SkipReason.SMALL_SIDE_WRITTEN: "nothing",
    SkipReason.NOT_WORTH_IT: "`SET starpruner.cost_gate=false` to try it",
    SkipReason.TRIAL: "nothing: the faster way is taken from then on",
    SkipReason.FEW_FILES: "lay the table out so that files differ: layouts.md",
    SkipReason.NO_EQUALITY: (
        "write the condition in the SELECT that reads the table, without words that may mean something"
        " else each time"
    ),
    SkipReason.OWN_FILTERS_ALONE: "nothing",
    SkipReason.OTHER_COLUMNS_READ: "a condition on partition columns alone beside it",
    SkipReason.JOINED_IN_VIEW: "join in the statement, or give the view the filter",
    SkipReason.UNSUPPORTED_FROM: "write it in another way",
    SkipReason.NOT_A_TABLE: "nothing: the tables in it are looked at by themselves",
    SkipReason.UNSUPPORTED_REFERENCE: "write the version as a literal",
    SkipReason.COLUMN_ALIASES: "rename them in the SELECT",
    SkipReason.NAMED_BY_DATABASE: "name them `table.column`",
    SkipReason.METADATA_IN_USE: "nothing",
    SkipReason.UNKNOWN_TABLE: "look whether the user may describe the table",
    SkipReason.VIEW_NOT_FOLLOWED: (
        "on Spark 3 a plain name for a temporary view; no double quotes or backslashes in its text"
    ),
    SkipReason.NOT_PARTITIONED: "nothing, if it is small; else partition it, or a file index",
    SkipReason.HIVE_FORMAT: (
        "`spark.sql.hive.convertMetastoreParquet`, or `CREATE TABLE .. USING parquet AS SELECT ..`"
    ),
    SkipReason.PROVIDER: "nothing",
    SkipReason.ICEBERG_METADATA: "nothing",
    SkipReason.STRICT_KEYS: "`window` consistency for this session",
    SkipReason.COLUMNS_DIFFER_BY_CASE: "rename one",
    SkipReason.TABLE_OFF: "take it out of there, or add it",
    SkipReason.OUTER_JOIN: "a filter that is false or null where the other side is null",
    SkipReason.NOT_A_PARTITION_COLUMN: "partition by it, or a file index; starpruner advise measures which",
    SkipReason.TYPES_DIFFER: "give both columns one type",
    SkipReason.TYPE_REFUSED: "a column of another type, such as a date",
    SkipReason.NULL_SAFE_OVER_NULLS: "`=`, if nulls need not match",
    SkipReason.REDUCER_NOT_A_TABLE: "see `VIEW_NOT_FOLLOWED`, `UNKNOWN_TABLE`",
    SkipReason.REDUCER_NOT_UNDERSTOOD: "filter by something deterministic",
    SkipReason.REDUCER_UNFILTERED: (
        "nothing, if all keys would match; else `ANALYZE TABLE .. COMPUTE STATISTICS`, so that its size is known"
    ),
    SkipReason.SMALL_SIDE_TOO_LARGE: "raise it, if the table is read fast",
    SkipReason.SMALL_SIDE_LARGER: "`ANALYZE TABLE .. COMPUTE STATISTICS`, so that sizes are known",
    SkipReason.REDUCER_PARTITIONED: (
        "a literal or `(SELECT max(dt) ..)` for its partition column (`s.dt = '2026-11-05'`); "
        "in dbt's MERGE `incremental_predicates`"
    ),
    SkipReason.VIEW_HIDES_KEY: "show it in the view",
    SkipReason.VIEW_UNDER_EXTENSION: "nothing: it may filter rows by the user",
    SkipReason.VIEW_IN_MEMORY: "nothing, or `UNCACHE TABLE`",
    SkipReason.RULE_OFF: "look into the log",
    SkipReason.KEYS_NOT_ASKED: "run it",
    SkipReason.TOO_MANY_KEY_QUERIES: "raise it",
    SkipReason.SCALAR_SUBQUERY_ROWS: "nothing: Spark reports the error",
    SkipReason.TOO_MANY_KEYS: "raise it, if thousands of keys leave out much",
    SkipReason.KEY_QUERY_DEADLINE: "raise it, or make the small side faster to read",
    SkipReason.KEY_QUERY_FAILED: "run the key query that `explain` shows; the log names Spark's error",
    SkipReason.KEY_TYPE_CHANGED: "give both columns one type",
    SkipReason.PARTITIONS_NOT_LISTED: "look whether the user may list the partitions",
    SkipReason.TOO_MANY_PARTITIONS: "filter the table by a literal too, or raise it",
    SkipReason.STRICT_PARTITIONS: "`window` consistency for this session",
    SkipReason.UNREADABLE_KEY: "nothing",
    SkipReason.NO_FILE_INDEX: "look whether the user may read the index",
    SkipReason.NOTHING_TO_SKIP: "lay the table out so that files differ: layouts.md",
    SkipReason.METASTORE_FILTER: "copy the table of the other system into a file format",
    SkipReason.INSERTED_TOO_MUCH: "filter the small side, so that there are fewer keys",
    SkipReason.PREDICATE_TOO_LARGE: "raise it",
}
