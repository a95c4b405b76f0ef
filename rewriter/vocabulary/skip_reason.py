"""Reasons why a fact scan or a whole statement stays as the client wrote it, or a table is not pinned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class SkipReason(Enum):
    """A refusal. The value is a sentence for the user; the member's name is the stable code."""

    # The statement as a whole.
    NOT_A_QUERY = (
        "Only SELECT, INSERT .. SELECT and CREATE TABLE .. AS SELECT are rewritten, and the source of a MERGE"
        " without WHEN NOT MATCHED BY SOURCE and queries elsewhere."
    )
    WRITES_WHAT_IT_READS = "The statement writes a table that it also reads."
    TOO_LARGE_TO_REPEAT = (
        "The statement is too long to be kept until its answer is there: it could not be run again."
    )
    NO_MEMORY = "Too little memory is free to analyse a statement of this length (proxy.memory_bytes_max)."
    SWITCHED_OFF = "Rewriting is switched off: in this session (starpruner.enabled), for its user, or for all."
    IN_SHADOW = "In shadow mode originals are sent, and the rewritten statements run beside them."
    NO_JOIN_IN_TEXT = "The statement has no join and no subquery."
    DOES_NOT_PARSE = "The statement could not be parsed as Spark SQL, so it is forwarded as it is."
    TOO_LARGE = "The statement is longer than rewrite.statement_chars_max."
    TOO_INTRICATE = "To analyse the statement would take too many steps: it nests or repeats too much."
    SEVERAL_STATEMENTS = "The text holds more than one statement."
    SUBSTITUTION = "The text holds ${..}, which Spark substitutes before it parses."
    UNUSUAL_TEXT = (
        "The text uses pipe syntax, TABLE as a query or an argument, IDENTIFIER(..), UNION FROM, comparisons of"
        " comparisons without parentheses, names that may be patterns in a query that is shown, words that are"
        " names and look like clauses, an output named by a field of a variant, a hint in a comment, or a comment"
        " continued by a backslash, which is not certain."
    )
    QUOTING_SETTINGS = (
        "The session changes what quotes or backslashes mean, so literals cannot be read with certainty."
    )
    SEARCH_PATH = (
        "The session searches names along a path (SET PATH), which DESCRIBE does not, or its own functions before"
        " Spark's: another table may be described than is read, and another function called than is named."
    )
    OWN_FUNCTIONS = (
        "The session has a function of its own (CREATE TEMPORARY FUNCTION), or may have made one by a statement"
        " that does not say all that it does (EXECUTE IMMEDIATE, a script, ${..}): it may hide one of Spark's, by"
        " which keys are asked for."
    )
    SHARED_SESSION = (
        "The server has one session for all clients (spark.sql.hive.thriftServer.singleSession): what names and"
        " settings mean may be changed by another one at any moment."
    )
    SETTINGS_UNKNOWN = "The server did not tell its settings, which may change what names mean."
    NUMBERED_BY_TASK = (
        "The statement, or a view in it, numbers rows by Spark's tasks, draws from a seed, runs a script, or calls"
        " a user's own function without arguments: that may answer otherwise where other files are read."
    )
    MISSING_FUNCTION = (
        "The statement, or a view in it, calls a function of newer versions of Spark that this server is not known"
        " to have: a user's own may have its name."
    )
    NOT_VERIFIED = "The rewritten text did not prove equal to the original plus the narrowed scans."
    DESCRIPTION_LATE = (
        "A table was not described within catalog.query_deadline_s; one of the next statements asks for it again."
    )
    SPLITS_UNKNOWN = (
        "Its tables may have many small files, of which too little is known yet: that is asked for beside it."
    )
    TABLES_UNSETTLED = "The tables changed while they were being looked up."
    QUARANTINED = "A statement like this one did harm when rewritten, so its original is sent for a while."
    SMALL_SIDE_WRITTEN = "A table that keys are read from is being written, or was in the meantime."
    NOT_WORTH_IT = "To ask for keys is expected to take longer than it saves."
    TRIAL = "The original runs this once, to compare what it takes."
    FEW_FILES = "Too few files would be skipped to make up for what it takes to narrow the statement."

    # The block (one SELECT with its FROM) that the scan stands in.
    NO_EQUALITY = (
        "No condition that every row must satisfy compares columns of this table, and only those that it is"
        " partitioned by, with one other table or a subquery."
    )
    OWN_FILTERS_ALONE = (
        "Only filters on the table itself apply to it: Spark uses them by itself when it plans the statement."
    )
    OTHER_COLUMNS_READ = "The condition on the table reads columns of it that it cannot be narrowed by."
    JOINED_IN_VIEW = "The name is of a view that joins tables within, and no condition outside it narrows them."
    UNSUPPORTED_FROM = "The FROM or the SELECT uses a clause that is not understood yet."

    # The reference to the table.
    NOT_A_TABLE = "The name is a CTE, a table function or a subquery, not a table."
    UNSUPPORTED_REFERENCE = (
        "The reference is sampled, pivoted, nested, has options or a version that is no literal."
    )
    COLUMN_ALIASES = "The reference renames its columns."
    NAMED_BY_DATABASE = (
        "The statement names the table's columns by database, which a narrowed scan would hide, and has no"
        " condition that a filter could stand beside."
    )
    METADATA_IN_USE = "The statement uses _metadata, or what Iceberg has of it, which a narrowed scan would hide."
    UNKNOWN_TABLE = "The table could not be described in the client's session."
    VIEW_NOT_FOLLOWED = "The view's text is not known, or it is not certain what its names and quotes mean."
    NOT_PARTITIONED = "The table is not partitioned."
    HIVE_FORMAT = (
        "The table is in Hive format, and Spark does not read its files itself, as it does Parquet and ORC where"
        " spark.sql.hive.convertMetastoreParquet and convertMetastoreOrc are true:"
        " CREATE TABLE .. USING parquet AS SELECT .. makes one that it does."
    )
    PROVIDER = "The table's format is not one whose partition pruning is known."
    ICEBERG_METADATA = "The table is one of those in which Iceberg tells of another one's files and snapshots."
    STRICT_KEYS = (
        "With strict consistency only keys that cannot change are used: of Iceberg tables at a snapshot, and of"
        " literals."
    )
    COLUMNS_DIFFER_BY_CASE = "Two columns of the table differ in case only."
    TABLE_OFF = "The table is switched off by rewrite.tables_off, or is not in rewrite.only_tables."
    MERGE_OFF = "A MERGE's target is narrowed only if rewrite.merge_tables names it."
    MERGE_UNCHECKED = "No check could fail the MERGE for a key of its source that was not asked for."

    # The equality and the table on its other side.
    OUTER_JOIN = "The join keeps the rows of this table that have no partner."
    NOT_A_PARTITION_COLUMN = "No equality is on a partition column, nor on one that the file index knows."
    TYPES_DIFFER = "The two sides of the equality have different types, which Spark would cast."
    TYPE_REFUSED = "The partition column's type has no literal that is safe to insert."
    NULL_SAFE_OVER_NULLS = "`<=>` compares a column that a subquery or an outer join can fill with nulls."
    REDUCER_NOT_A_TABLE = (
        "The other side of the join is a view that could not be followed, or a table that could not be described."
    )
    REDUCER_NOT_UNDERSTOOD = "The other side of the join may give other rows when it is asked again."
    REDUCER_UNFILTERED = "The other side of the join has no filter that the key query could use."
    SMALL_SIDE_TOO_LARGE = "The other side of the join is larger than rewrite.small_side_bytes_max."
    SMALL_SIDE_LARGER = (
        "The other side of the join may be as large as this table, so to ask it for keys may be costly."
    )
    REDUCER_PARTITIONED = "The other side of the join is itself partitioned, so its key query may be costly."
    VIEW_HIDES_KEY = (
        "A join in the view would narrow it, but the view does not show the partition column as it is."
    )
    VIEW_UNDER_EXTENSION = (
        "Spark has an extension that is not known (spark.sql.extensions): it may show this user other rows of the"
        " tables behind the view than the view does."
    )
    VIEW_IN_MEMORY = (
        "Spark reads the view, or a part of it, from memory (CACHE TABLE), where the small side may be older; or"
        " no plan of the view could be had."
    )
    RULE_OFF = "A rule that this takes is switched off in rewrite.rules_off, or quarantined because it did harm."

    # The key query and its answer.
    KEYS_NOT_ASKED = "The key query was not run."
    TOO_MANY_KEY_QUERIES = "The statement has more reducers than rewrite.key_queries_max."
    SCALAR_SUBQUERY_ROWS = "A subquery behind = gave more than one row, which is for Spark to report as an error."
    TOO_MANY_KEYS = "The key query found more keys than rewrite.key_rows_max."
    KEY_QUERY_DEADLINE = "The key query took longer than rewrite.key_query_deadline_s."
    KEY_QUERY_FAILED = "The key query failed."
    KEY_TYPE_CHANGED = "The key query's column does not have the fact column's type."
    PARTITIONS_NOT_LISTED = "The partitions could not be listed, so Spark cannot be asked which of them match."
    TOO_MANY_PARTITIONS = "The table has more partitions to ask about than rewrite.partition_list_max."
    STRICT_PARTITIONS = (
        "With strict consistency Spark is not asked which partitions match, whatever the small side is."
    )
    UNREADABLE_KEY = "A key could not be written as a literal with certainty."
    NO_FILE_INDEX = "Only the file index could tell which files hold keys, and it is not at hand now."
    NOTHING_TO_SKIP = (
        "Every file may hold a key, or nearly every one, and no row groups in them are known to miss."
    )
    METASTORE_FILTER = (
        "Spark could send what would be inserted to a Hive metastore that cannot say it, or to another system that"
        " may compare in another way, since it infers filters for all tables that are joined by a key."
    )
    INSERTED_TOO_MUCH = (
        "Conditions for all scans of the statement together would be more than Spark plans in seconds: those scans"
        " are narrowed that save most for the length."
    )
    PREDICATE_TOO_LARGE = "The predicate is longer than rewrite.predicate_chars_max."

    @property
    def sentence(self) -> str:
        """The reason in words that a user understands."""
        return self.value

    @property
    def reason(self) -> SkipReason:
        """The reason itself, as of a refusal with a cause."""
        return self

    @property
    def cause(self) -> None:
        """None: a reason alone does not tell its cause."""
        return None

    def because(self, cause: str) -> CausedRefusal:
        """The refusal with its cause."""
        return CausedRefusal(self, cause)


@dataclass(frozen=True)
class CausedRefusal:
    """A refusal with its cause: the condition, the word, the name or the types in the statement, for the user.

    >>> SkipReason.TYPE_REFUSED.because("ds is of type double").about("s").cause
    's: ds is of type double'
    """

    reason: SkipReason
    # No part of what is refused: the same refusal may be found in two ways.
    cause: str = field(compare=False)

    def about(self, name: str) -> CausedRefusal:
        """The refusal of what has the name, and the cause within."""
        return CausedRefusal(self.reason, f"{name}: {self.cause}")


# A refusal, with its cause where one is known.
Refusal: TypeAlias = SkipReason | CausedRefusal


class UnpinnedReason(Enum):
    """A reason why an Iceberg table that key queries read is not read at a snapshot.

    The value is a sentence for the user; the member's name is the stable code.
    """

    # The statement, and the table as the statement names it.
    STATEMENT_WRITES = "The statement writes: if the snapshot were expired meanwhile, it could not be run again."
    NO_SNAPSHOT = "Nothing had been written into the table when it was described, so that it has no snapshot."
    NOT_THE_TABLE = "The name is of a branch or a tag, or of what Iceberg tells of a table."
    VERSION_CAN_MOVE = "The statement names a branch, a tag or a moment, which may come to mean another snapshot."
    UNKNOWN_BESIDE_IT = "The statement reads something else that is not known, and that may read this table too."
    VIEW_READS_IT = "A view of the statement reads the table too, as it is at that moment."
    HINT_NEEDS_ALIAS = (
        "The statement has hints, and the table stands in it without an alias:"
        " behind a version Spark does not find it by its name."
    )
    TAKES_NO_VERSION = "The statement names the table where no version can be put, or has a CTE of its name."
    TWO_NAMES = "The statement has two names for the table, and somebody may write it while they are looked up."

    # Spark's plan of the table in this session.
    PLAN_FAILED = "Spark's plan of the table failed, or took longer than catalog.query_deadline_s."
    PLAN_UNCLEAR = "Spark's plan of the table does not tell a snapshot, or tells of more than one scan."
    PLANS_TELL_NO_SCHEMA = (
        "The plans of this server's Iceberg do not tell which schema is read, so they are not asked for a while."
    )
    ON_A_BRANCH = "The session reads the table on a branch, such as that of spark.wap.branch."
    SCHEMA_CHANGED = (
        "The version does not read what the name reads: the table's columns were changed after its last commit,"
        " or the snapshot is gone."
    )
    NOT_PROVEN = "With a version in it the statement is not certain to be the same, or has no keys to ask for."

    @property
    def sentence(self) -> str:
        """The reason in words that a user understands."""
        return self.value
