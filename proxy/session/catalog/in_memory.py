"""Views that Spark reads from memory: CACHE TABLE of any session keeps the rows of a query there.

Spark finds such a query in others by its plan, not by a name. It drops or renews the rows if it writes the query's
tables itself. If others write the tables, the rows in memory stay as they are.
"""

from __future__ import annotations

from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Query, QueryResult, Rows
from rewriter import TableName

# The plan of a view of some hundred tables.
_PLAN_BYTES_MAX: Final = 1 << 20
# As Spark names what it reads from memory, in plans of all versions.
_FROM_MEMORY: Final = "InMemoryRelation"


def plan_query(view: TableName, condition: str, settings: CatalogSection) -> Query:
    """The statement whose answer `may_be_in_memory` reads, asked of the client's own Spark session.

    Planned without a condition, a view with a join has all partitions of its fact listed.
    """
    where = f" WHERE {condition}" if condition else ""
    sql = f"EXPLAIN SELECT * FROM {view.sql}{where}"  # noqa: S608 - a quoted name, and literals
    return Query(sql, 1, _PLAN_BYTES_MAX, settings.query_deadline_s, is_for_client=True)


def may_be_in_memory(plan: QueryResult) -> bool:
    """True unless a plan shows that all is read where it is stored. An EXPLAIN that failed shows nothing."""
    text = str(plan.rows[0][0]) if isinstance(plan, Rows) and plan.rows else _FROM_MEMORY
    return _FROM_MEMORY in text or "== Physical Plan ==" not in text
