"""A pure library that narrows the fact scans of a Spark SQL statement by the keys their joins can match.

Standard library and sqlglot only: no I/O, no clock, no globals that change. `read` parses a statement, `plan`
finds the scans that may be narrowed and the key queries that say how, `apply` inserts the predicates into the
client's own text. Every refusal is a `SkipReason`, never an exception.
"""

from rewriter.catalog.table_facts import (
    TEMPORARY_NAMESPACES,
    Catalog,
    IcebergFacts,
    TableFacts,
    TableKind,
    ViewText,
)
from rewriter.domains.keyset import KeyRanges, Keys, KeySet
from rewriter.domains.literals import UnreadableKeyError
from rewriter.plan import Plan, plan
from rewriter.planning.snapshot_pins import known_at, pinned
from rewriter.planning.views import VIEW_NESTING_MAX
from rewriter.rewrite import Rewrite, ScanOutcome, apply
from rewriter.semijoins.key_query import KeyQuery
from rewriter.semijoins.limits import Limits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducers import Question, Reducer
from rewriter.sql.classify import may_be_narrowed, may_have_a_join
from rewriter.sql.statement import Statement, read
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import SkipReason, Unpinned

__all__ = [
    "TEMPORARY_NAMESPACES",
    "VIEW_NESTING_MAX",
    "Catalog",
    "Column",
    "IcebergFacts",
    "KeyQuery",
    "KeyRanges",
    "KeySet",
    "Keys",
    "Limits",
    "Plan",
    "PlannedScan",
    "Question",
    "Reducer",
    "Rewrite",
    "Rule",
    "ScanOutcome",
    "SkipReason",
    "Statement",
    "TableFacts",
    "TableKind",
    "TableName",
    "Unpinned",
    "UnreadableKeyError",
    "ViewText",
    "apply",
    "known_at",
    "may_be_narrowed",
    "may_have_a_join",
    "pinned",
    "plan",
    "read",
]
