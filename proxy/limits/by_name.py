"""The limits that may count for a user's statement, told by the names in its text alone: no server is asked."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.config.config import Config
from proxy.limits.limits import ScanRead, limits_for, limits_of
from rewriter import TableName
from rewriter.sql.statement import parse_to_read


def limits_by_name(config: Config, user: str, text: str) -> Iterator[str]:
    """A line for each table that the text names. Only a server knows the tables behind a view."""
    limits = limits_for(limits_of(config.limits, config.limiting), user)
    statement = parse_to_read(text, chars_max=config.rewrite.statement_chars_max)
    if statement is None:
        yield f"the tables of the statement are not certain: {len(limits)} limits may count for {user}"
        return
    for table in statement.tables_read:
        parts = (table.catalog, table.db, table.name)
        scan = ScanRead(TableName(tuple(part for part in parts if part)), None)
        named = [limit.section.name for limit in limits if limit.bounds and limit.names(scan)]
        # A name without a database may belong to any database.
        found = f"limit {' or '.join(named)} may count for {user}" if named else f"no limit counts for {user}"
        yield f"{'.'.join(scan.table.parts)}: {found}"
