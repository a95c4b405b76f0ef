r"""A pure library that narrows the fact scans of a Spark SQL statement by the keys that their joins can match.

Standard library and sqlglot only: no I/O, no clock, no globals that change. `parse` parses a statement, `plan`
finds the scans that can be narrowed and the key queries to run first, `apply` inserts the predicates into the
client's own text. Every refusal is a `SkipReason`, never an exception.

A scan is narrowed, a statement is rewritten: `Rewrite.text` is the rewritten text, and the original where no scan
was narrowed. The caller describes the tables, and runs the key queries in the client's session:

>>> sales, dates = TableName(("sales",)), TableName(("dates",))
>>> catalog = {
...     sales: TableFacts((Column("amount", "int"), Column("ds", "string")), partition_columns=("ds",)),
...     dates: TableFacts((Column("ds", "string"), Column("year", "int"))),
... }
>>> sql = "SELECT sum(s.amount)\nFROM sales s\nJOIN dates d ON s.ds = d.ds\nWHERE d.year = 2026"
>>> statement = parse(sql, chars_max=10_000)
>>> found = plan(statement, catalog, RewriteLimits())
>>> (key_query,) = found.key_queries
>>> print(key_query.sql.replace(" WHERE ", "\nWHERE "))
SELECT DISTINCT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d
WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
>>> rows = [("2026-01-01", "string"), ("2026-01-02", "string")]
>>> print(apply(found, {key_query: key_query.read(rows)}, RewriteLimits()).text)
SELECT sum(s.amount)
FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s
JOIN dates d ON s.ds = d.ds
WHERE d.year = 2026
"""

from rewriter.catalog.table_facts import (
    TEMPORARY_NAMESPACES,
    Catalog,
    IcebergFacts,
    TableFacts,
    TableKind,
    ViewText,
)
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.literals import UnreadableKeyError
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.partitions.index import PartitionIndexes
from rewriter.plan import Plan, plan
from rewriter.planning.snapshot_pins import catalog_at_snapshots, pin_snapshots
from rewriter.planning.views import VIEW_NESTING_MAX
from rewriter.rewrite import Rewrite, ScanOutcome, apply
from rewriter.semijoins.key_query import KeySetQuery
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.partition_query import PartitionsQuery
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.range_query import KeyRangesQuery
from rewriter.semijoins.reducer import KeyQuery, Reducer
from rewriter.semijoins.small_sides import PartOfTable
from rewriter.sql.classify import may_be_rewritten, may_have_a_join, names_read
from rewriter.sql.statement import Statement, parse
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import SkipReason, UnpinnedReason

__all__ = [
    "TEMPORARY_NAMESPACES",
    "VIEW_NESTING_MAX",
    "Catalog",
    "Column",
    "IcebergFacts",
    "KeyQuery",
    "KeyRanges",
    "KeyRangesQuery",
    "KeySet",
    "KeySetQuery",
    "Keys",
    "PartOfTable",
    "PartitionIndexes",
    "PartitionMatches",
    "PartitionsQuery",
    "Plan",
    "PlannedScan",
    "Reducer",
    "Rewrite",
    "RewriteLimits",
    "Rule",
    "ScanOutcome",
    "SkipReason",
    "Statement",
    "TableFacts",
    "TableKind",
    "TableName",
    "UnpinnedReason",
    "UnreadableKeyError",
    "ViewText",
    "apply",
    "catalog_at_snapshots",
    "may_be_rewritten",
    "may_have_a_join",
    "names_read",
    "parse",
    "pin_snapshots",
    "plan",
]
