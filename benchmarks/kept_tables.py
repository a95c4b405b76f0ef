"""Tables that are made once and kept for the next run, and what is asked of them."""

from dataclasses import dataclass

from pyhive import hive

from demo.hive import run

# Set on a table once it is complete: of one whose making was stopped, some rows may be missing.
_COMPLETE = "starpruner.loaded"
# In TBLPROPERTIES of a statement that makes and fills a table at once.
COMPLETE_PROPERTY = f"'{_COMPLETE}' = 'true'"


@dataclass(frozen=True)
class Question:
    """One statement about one table."""

    name: str
    table: str
    sql: str


def is_complete(session: hive.Connection, table: str) -> bool:
    """Tell whether the table, `database.name` or of the session's database, exists and is complete."""
    database, _, name = table.rpartition(".")
    place = f" IN {database}" if database else ""
    if not run(session, f"SHOW TABLES{place} LIKE '{name}'"):
        return False
    return any(key == _COMPLETE for key, _ in run(session, f"SHOW TBLPROPERTIES {table}"))


def mark_complete(session: hive.Connection, table: str) -> None:
    """All its rows are there."""
    run(session, f"ALTER TABLE {table} SET TBLPROPERTIES ({COMPLETE_PROPERTY})")


def unmark_complete(session: hive.Connection, table: str) -> None:
    """It is about to become another one, and the next run makes it anew."""
    run(session, f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{_COMPLETE}')")
