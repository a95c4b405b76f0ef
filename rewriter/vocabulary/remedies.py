"""Remedies: advice for each skip reason, as in the table of docs/coverage.md."""

from __future__ import annotations

from typing import Final

from rewriter.vocabulary.skip_reason import SkipReason

# In the words of docs/coverage.md, which a test compares; the page of the admin port shows them.
REMEDIES: Final[dict[SkipReason, str]] = {
    SkipReason.NOT_A_QUERY: "nothing",
    SkipReason.WRITES_WHAT_IT_READS: "nothing",
    SkipReason.TOO_LARGE_TO_REPEAT: "send a shorter statement",
    SkipReason.MERGE_OFF: "name it in `rewrite.merge_tables`: writes.md",
    SkipReason.MERGE_UNCHECKED: "compare with the source by `=`, beside WHEN NOT MATCHED THEN INSERT: writes.md",
    SkipReason.NO_MEMORY: "raise `proxy.memory_bytes_max`, or give the proxy more memory",
    SkipReason.SWITCHED_OFF: "`SET starpruner.enabled=true`",
    SkipReason.IN_SHADOW: "`SET starpruner.mode=rewrite`, or `rewrite.mode`",
    SkipReason.NO_JOIN_IN_TEXT: "a file index, if it filters a large table",
    SkipReason.DOES_NOT_PARSE: "simplify it; report it if Spark takes it",
    SkipReason.TOO_LARGE: "raise `rewrite.statement_chars_max`, if a second of parsing is little for it",
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
    SkipReason.SHARED_SESSION: "`spark.sql.hive.thriftServer.singleSession=false` in Spark",
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
    SkipReason.COLUMN_ALIASES: "rename the columns in the SELECT",
    SkipReason.NAMED_BY_DATABASE: "name the columns `table.column`",
    SkipReason.METADATA_IN_USE: "nothing",
    SkipReason.UNKNOWN_TABLE: "run `DESCRIBE TABLE EXTENDED` of it as this user, and read the error",
    SkipReason.VIEW_NOT_FOLLOWED: (
        "on Spark 3 a plain name for a temporary view; no double quotes or backslashes in its text"
    ),
    SkipReason.NOT_PARTITIONED: "nothing, if it is small; else partition it, or a file index",
    SkipReason.HIVE_FORMAT: (
        "`spark.sql.hive.convertMetastoreParquet`, or `CREATE TABLE .. USING parquet AS SELECT ..`"
    ),
    SkipReason.PROVIDER: "nothing",
    SkipReason.ICEBERG_METADATA: "nothing",
    SkipReason.STRICT_KEYS: "`SET starpruner.consistency=window` for this session",
    SkipReason.COLUMNS_DIFFER_BY_CASE: "rename one of the columns",
    SkipReason.TABLE_OFF: "take it out of `rewrite.tables_off`, or add it to `rewrite.only_tables`",
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
    SkipReason.SMALL_SIDE_TOO_LARGE: "raise `rewrite.small_side_bytes_max`, if the table is read fast",
    SkipReason.SMALL_SIDE_LARGER: "`ANALYZE TABLE .. COMPUTE STATISTICS`, so that sizes are known",
    SkipReason.REDUCER_PARTITIONED: (
        "a literal or `(SELECT max(dt) ..)` for its partition column (`s.dt = '2026-11-05'`); "
        "in dbt's MERGE `incremental_predicates`"
    ),
    SkipReason.VIEW_HIDES_KEY: "show the partition column in the view",
    SkipReason.VIEW_UNDER_EXTENSION: "nothing: it may filter rows by the user",
    SkipReason.VIEW_IN_MEMORY: "nothing, or `UNCACHE TABLE`",
    SkipReason.RULE_OFF: "take it out of `rewrite.rules_off`; if it is quarantined, look into the log",
    SkipReason.KEYS_NOT_ASKED: "explain it again with its key queries",
    SkipReason.TOO_MANY_KEY_QUERIES: "raise `rewrite.key_queries_max`",
    SkipReason.SCALAR_SUBQUERY_ROWS: "nothing: Spark reports the error",
    SkipReason.TOO_MANY_KEYS: "raise `rewrite.key_rows_max`, if thousands of keys leave out much",
    SkipReason.KEY_QUERY_DEADLINE: "raise `rewrite.key_query_deadline_s`, or make the small side faster to read",
    SkipReason.KEY_QUERY_FAILED: "run the key query that `explain` shows; the log names Spark's error",
    SkipReason.KEY_TYPE_CHANGED: "give both columns one type",
    SkipReason.PARTITIONS_NOT_LISTED: "run `SHOW PARTITIONS` of it as this user, and read the error",
    SkipReason.TOO_MANY_PARTITIONS: "filter the table by a literal too, or raise `rewrite.partition_list_max`",
    SkipReason.STRICT_PARTITIONS: "`SET starpruner.consistency=window` for this session",
    SkipReason.UNREADABLE_KEY: "nothing",
    SkipReason.NO_FILE_INDEX: "run a SELECT of the index table as this user: may it be read?",
    SkipReason.NOTHING_TO_SKIP: "lay the table out so that files differ: layouts.md",
    SkipReason.METASTORE_FILTER: "copy the other table: `CREATE TABLE .. USING parquet AS SELECT ..`",
    SkipReason.INSERTED_TOO_MUCH: "filter the small side, so that there are fewer keys",
    SkipReason.PREDICATE_TOO_LARGE: "raise `rewrite.predicate_chars_max`",
}
