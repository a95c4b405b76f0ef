"""Ways to narrow a fact that can be switched off: by the configuration, or for a while after one did harm.

The soundness rules stand in `rewriter.scopes.join_rules`, and are never switched off.
"""

from __future__ import annotations

from enum import Enum
from typing import Self


class Rule(Enum):
    """A way to narrow. The value is the stable name that a user switches it off by."""

    sentence: str

    def __new__(cls, name: str, sentence: str) -> Self:
        """A rule by its name, with a sentence for the user."""
        rule = object.__new__(cls)
        rule._value_ = name
        rule.sentence = sentence
        return rule

    # Joins and subqueries between the fact and its small side.
    INNER_JOIN = "inner_join", "A fact is narrowed by a table that it is joined with, also by a comma or in WHERE."
    OUTER_JOIN = "outer_join", "A fact is narrowed on the side of an outer join that is padded with nulls."
    MADE_INNER = "made_inner", "An outer join counts as inner if a condition above or outside rejects padded rows."
    SEMI_JOIN = "semi_join", "A fact is narrowed by the right side of a LEFT SEMI JOIN."
    IN_SUBQUERY = "in_subquery", "A fact is narrowed by what a subquery behind IN answers."
    SCALAR_SUBQUERY = "scalar_subquery", "A fact is narrowed by what a subquery behind = answers."
    EXISTS = "exists", "A fact is narrowed by the table that EXISTS joins it with."
    MERGE = "merge", "The target of a MERGE is narrowed by its source, in tables that rewrite.merge_tables names."
    PROBED = (
        "probed",
        "A fact is looked into for rows of its small side: by a correlated subquery, or right of SEMI or ANTI.",
    )

    # Comparisons of the fact with its keys.
    NULL_SAFE = "null_safe", "A fact is narrowed by <=>, which lets null match null."
    KEY_EXPRESSIONS = "key_expressions", "The key is an expression over the small side, such as a cast."
    TIMES = "times", "A fact is narrowed by timestamps, and by days that it casts timestamps to."
    PAIRS = "pairs", "The keys of several columns are asked for together and stay paired."
    PARTITION_LIST = (
        "partition_list",
        "Where keys do not tell the partitions, Spark is asked which of them satisfy the condition.",
    )
    RANGES = "ranges", "Of keys that are too many, ranges around them are asked for."

    # Queries and tables around the fact and its small side.
    DERIVED_TABLES = "derived_tables", "A fact or a small side stands behind a derived table, a CTE or a UNION."
    VIEWS = "views", "A fact or a small side stands behind a view."
    VIEW_JOINS = "view_joins", "A view is narrowed by a join in its text, and by filters on the view."
    SNOWFLAKE = "snowflake", "Tables that are joined to the small side restrict it in their turn."
    OUTER_FILTERS = "outer_filters", "Filters outside a derived table restrict a small side within."
    LATEST_PARTITION = (
        "latest_partition",
        "The keys come from partition columns of a partitioned table alone, as in (SELECT max(ds) ..).",
    )
    PARTITIONED_SIDES = (
        "partitioned_sides",
        "The small side reads a partitioned table, of which the statement itself chooses partitions.",
    )
    FOLLOWED_FACTS = (
        "followed_facts",
        "The small side is a fact that is narrowed itself, whose own small side has the keys.",
    )
    SESSION_FUNCTIONS = "session_functions", "What current_date() and the like answered is assumed to hold."

    # Files, row groups and buckets that are skipped, beside partitions.
    FILE_HINTS = "file_hints", "Files that the file index knows to hold nothing that is asked for are skipped."
    RANGE_IN = "range_in", "Keys of an indexed column are said as ranges, by which row groups are skipped."
    BUCKETS = "buckets", "Keys of the bucket column are said one by one, by which buckets are skipped."
    ICEBERG = "iceberg", "Keys of an Iceberg table's column are said, by which Iceberg skips manifests and files."
    DELTA = "delta", "Keys of a Delta table's column are said, by which Delta skips files."

    # Number of tasks that read a scan.
    SPLITS = (
        "splits",
        "A scan of many small files is read in fewer tasks, narrowed or not.",
    )
