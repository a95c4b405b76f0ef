"""Why an Iceberg table that keys are read from is read as it is, and not at a snapshot."""

from __future__ import annotations

from enum import Enum


class Unpinned(Enum):
    """A reason. The value is a sentence for the user; the member's name is the stable code."""

    # The statement, and what of the table it names.
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

    # What Spark plans for the table in this session.
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
