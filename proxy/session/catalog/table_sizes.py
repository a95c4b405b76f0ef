"""Sizes of tables that have no statistics: Spark's own estimate, from EXPLAIN COST.

A table that was filled by INSERT and never analyzed has no size in DESCRIBE. Spark's plan has one all the same:
the bytes of the table's files, which it lists for the statement too.
"""

from __future__ import annotations

import re
from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Query, QueryResult, Rows

_BYTES_MAX: Final = 1024 * 1024

# Spark's size for a relation of unknown size, `spark.sql.defaultSizeInBytes`, is that of Long.MaxValue: 8.0 EiB.
_UNKNOWN_BYTES_MIN: Final = 2**60

_UNITS: Final = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}

# `Relation d.t[k#1,v#2] parquet, Statistics(sizeInBytes=17.8 KiB)`; of sizes below a kibibyte `812.0 B`. Source:
# Statistics.simpleString in Spark's sql/catalyst/.../plans/logical/Statistics.scala.
_PLAN = re.compile(r"Optimized Logical Plan ==\s")
_SIZE = re.compile(r"\bsizeInBytes=(\d++(?:\.\d++)?) ([KMGTPE]i)?B\b")


def size_query(source: str, settings: CatalogSection, predicate: str | None = None) -> Query:
    """The statement whose answer `read_size` reads. A predicate leaves those files that a Delta table needs.

    The source is the quoted name of a table, or the FROM and the WHERE of a `PartOfTable`.
    """
    where = "" if predicate is None else f" WHERE {predicate}"
    sql = f"EXPLAIN COST SELECT * FROM {source}{where}"  # noqa: S608 - texts of ours, or of the client's own
    return Query(sql, rows_max=1, bytes_max=_BYTES_MAX, deadline_s=settings.query_deadline_s)


def read_size(result: QueryResult) -> int | None:
    """The bytes of the table, in three digits or so; None where Spark does not know them.

    >>> plan = "== Optimized Logical Plan == Relation d.t[k#1] parquet, Statistics(sizeInBytes=1.5 KiB)"
    >>> read_size(Rows((), ((plan,),), 0.0))
    1536
    """
    plans = str(result.rows[0][0]) if isinstance(result, Rows) and result.rows else ""
    plan = _PLAN.search(plans)
    return size_in(plans[plan.end() :]) if plan is not None else None


def size_in(plan: str) -> int | None:
    """The first size in the text of a plan; None where Spark does not know it."""
    found = _SIZE.search(plan)
    if found is None:
        return None
    size_bytes = int(float(found[1]) * _UNITS[f"{found[2] or ''}B"])
    return size_bytes if size_bytes < _UNKNOWN_BYTES_MIN else None
