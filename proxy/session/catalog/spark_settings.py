"""The server's own settings that decide what a name means: one session for all clients, the order of search.

No statement of the session tells them (`proxy.session.consistency.session_state` sees the settings that it makes).
"""

from __future__ import annotations

from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import NO_TABLES, Query, QueryResult, Rows
from rewriter import SkipReason

# Source: Spark's StaticSQLConf. With it, SET and USE of one client count for all.
_SHARED_SESSION: Final = "spark.sql.hive.thriftServer.singleSession"
# Source: Spark's SQLConf, from 4.2 on.
_SEARCH_PATH: Final = "spark.sql.defaultPath"
# From 4.3 on: `first` lets a function of a session's own hide one of Spark's, also those that we insert.
_FUNCTION_ORDER: Final = "spark.sql.functionResolution.sessionOrder"
_OWN_FUNCTIONS_FIRST: Final = "first"

# Servers have some dozens of settings.
_ROWS_MAX: Final = 10_000
_BYTES_MAX: Final = 4 * 1024 * 1024


def settings_query(settings: CatalogSection) -> Query:
    """The statement whose answer `uncertainty` reads: all settings that were set. The rest has its default."""
    return Query(
        "SET", rows_max=_ROWS_MAX, bytes_max=_BYTES_MAX, deadline_s=settings.query_deadline_s, reads=NO_TABLES
    )


def uncertainty(answer: QueryResult) -> SkipReason | None:
    """The reason why a name may mean another table than the described one, if the settings give one."""
    if not isinstance(answer, Rows):
        return SkipReason.SETTINGS_UNKNOWN
    values = {str(row[0]): str(row[1]) for row in answer.rows}
    if values.get(_SHARED_SESSION, "false").strip().lower() != "false":
        return SkipReason.SHARED_SESSION
    hides_functions = values.get(_FUNCTION_ORDER, "").strip().lower() == _OWN_FUNCTIONS_FIRST
    return SkipReason.SEARCH_PATH if values.get(_SEARCH_PATH) or hides_functions else None
