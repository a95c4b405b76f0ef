"""Bounds of one rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewriter.domains.consumers import METASTORES
from rewriter.domains.widen import Consumer
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule

_GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What a rewrite may ask, and how much it may insert. The reasons stand where the configuration sets them."""

    key_rows_max: int = 5_000
    key_ranges_max: int = 200
    key_queries_max: int = 8
    small_side_bytes_max: int = 10 * _GIB
    metastore: Consumer = METASTORES["derby"]
    # The same for tables of which it refused a filter, by their full names.
    metastore_for: Mapping[TableName, Consumer] = field(default_factory=dict)
    predicate_chars_max: int = 128 * 1024
    # Of the list of files to skip, which is read once, by Spark's planner, and goes to no metastore.
    file_hint_chars_max: int = 512 * 1024
    # Whether there is a file index at all: without one, statements that join nothing need no look.
    has_file_index: bool = False
    # What is switched off. A table by its own name, or with its database and catalog before it; * stands for all
    # tables of a database.
    rules_off: frozenset[Rule] = frozenset()
    tables_off: frozenset[TableName] = frozenset()
    # Whether the statement itself is to look if the keys have changed since they were read
    # (`rewriter.predicates.strict_check`).
    strict: bool = False
    # Whether the session may have variables: where case is told apart, `DS` is one of them and no column `ds`.
    has_variables: bool = False
