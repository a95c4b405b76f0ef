"""Limits of one rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rewriter.domains.consumers import METASTORES
from rewriter.domains.widen import Consumer
from rewriter.scopes.steps import PLAN_STEPS_MAX
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule

_GIB = 1024**3

# Characters that are inserted into one statement: room for a scan with the longest list of files to skip and the
# longest predicate, or for some thirty with 1,000 keys. A driver with 1 GB planned 770,000 characters in 7 s on a
# busy machine, and ran out of memory at 1,700,000.
INSERTED_CHARS_MAX: Final = 1024 * 1024

# Values and comparisons among them: ten scans with as many keys as may be. Spark took 0.13 ms and some KB of
# memory for each, so that short numbers would fill its driver long before they were too many characters.
INSERTED_VALUES_MAX: Final = 50_000


@dataclass(frozen=True)
class RewriteLimits:
    """Limits of a rewrite's queries and of the text it inserts. The configuration states the reasons."""

    key_rows_max: int = 5_000
    key_ranges_max: int = 200
    key_queries_max: int = 8
    # Partitions that are asked about in one query, where keys do not tell which of them match.
    partition_list_max: int = 20_000
    small_side_bytes_max: int = 10 * _GIB
    # A small side of this known size is asked for its keys without any filter.
    tiny_side_bytes_max: int = 16 * 1024
    metastore: Consumer = METASTORES["derby"]
    # The metastore's limits for tables for which it refused a filter, by their full names.
    metastore_for: Mapping[TableName, Consumer] = field(default_factory=dict)
    # Tables with a partition whose value the metastore may cast to another one than Spark does. A caller that
    # does not know them names all of `Plan.cast_tables`.
    misread_tables: frozenset[TableName] = frozenset()
    predicate_chars_max: int = 128 * 1024
    # For the list of files to skip, which Spark's planner reads once and no metastore gets.
    file_hint_chars_max: int = 512 * 1024
    # Characters that are inserted into all scans of a statement together, and the values and comparisons in them
    # (`rewriter.predicates.inserted_total`).
    inserted_chars_max: int = INSERTED_CHARS_MAX
    inserted_values_max: int = INSERTED_VALUES_MAX
    # Steps of a plan that shares none (`rewriter.scopes.steps`), beyond which the statement stays as it is.
    plan_steps_max: int = PLAN_STEPS_MAX
    # True if there is a file index: without one, statements without a join need no plan.
    has_file_index: bool = False
    # True if the statement may read a table of many small files, whose scans are read in fewer splits also where
    # they are not narrowed: then it needs a plan whatever its conditions are.
    has_small_files: bool = False
    # Rules and tables that are switched off: a table by its own name, or with its database and catalog before it;
    # * names all tables of a database.
    rules_off: frozenset[Rule] = frozenset()
    tables_off: frozenset[TableName] = frozenset()
    # The only tables that are narrowed, if any are named.
    only_tables: frozenset[TableName] = frozenset()
    # The tables that are narrowed as the target of a MERGE, named in the same way.
    merge_tables: frozenset[TableName] = frozenset()
    # True if only keys that cannot change are to be used: those of tables at a snapshot, or of no table. A MERGE's
    # target has a check in the statement, whatever its keys.
    strict: bool = False
    # A word of letters and digits in the message of that check. Data that a failure quotes cannot hold the message
    # if nobody can guess the word.
    check_word: str = ""
    # True if the session may have variables: in a case-sensitive session `DS` may be one, and not the column `ds`.
    has_variables: bool = False
    # Names, in lower case, that are known to be of tables: without a join nothing has to be asked about them.
    table_names: frozenset[str] = frozenset()
    # True if Spark has extensions of its plans that are not known: one may show a user other rows of a table than
    # a view over it does.
    has_unknown_extensions: bool = False
    # True if the server may have Delta's rules: a table that is not known may be Delta's.
    has_delta: bool = False
    # Functions of newer versions of Spark (`NEWER_FUNCTIONS`) that the server is not known to have: a user's own
    # function may have the name.
    missing_functions: frozenset[str] = frozenset()
    # Formats, parquet and orc, whose tables in Hive's format the session does not read by Spark's own reader.
    unconverted_formats: frozenset[str] = frozenset()
