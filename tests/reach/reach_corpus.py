"""The statements of the corpus, a file in statements/ for each tool.

A statement says how many of its references to facts a filter on partitions could narrow, whoever finds the filter.
The text of a fact in a view or in a CTE counts once, and a fact that no small table and no list of partitions says
anything about counts not at all. `{target}` stands for the table that a statement writes.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
DATABASE: Final = "reach"
TARGET: Final = "{target}"
# The tables that statements write, by the session that sends them.
DIRECT: Final = "written_directly"
PROXIED: Final = "written_through_proxy"

# The kinds of what a statement needs to be narrowed, `star` being a plain star join.
KINDS: Final = frozenset(
    {
        "star",
        # An outer join that a filter makes inner.
        "outer_join",
        # A filter with a timestamp on the small side, or with a literal that begins as one does.
        "timestamp",
        # `a = b OR (a IS NULL AND b IS NULL)`.
        "null_safe",
        # A condition over partition columns that is no equality of columns of one type.
        "condition",
        # A fact in a view.
        "view",
        # A small side without a filter.
        "tiny",
        # A small side that is a fact, read by its partitions or narrowed itself.
        "followed",
        # Anti joins, EXCEPT, correlated subqueries, top n and windows in the small side.
        "subquery",
        # A form of the text: a CTE behind CREATE TABLE or INSERT, a derived table without a name, columns named
        # by database.
        "form",
    }
)
FACTS: Final = frozenset(
    "sales orders inventory web_events clicks shipments budgets returns gl_entries "
    "store_days v_sales v_orders v_order_margin v_secure_shipments fct_daily__dbt_tmp stg_sales__dbt_tmp".split()
)

_TEMPORARY_VIEW: Final = re.compile(r"create or replace temporary view (\w+)")
_CREATE_TABLE_AS: Final = re.compile(r"\bcreate table \{target\}.*?\bas\b", re.IGNORECASE | re.DOTALL)
_INSERT: Final = re.compile(
    r"\binsert (?:into|overwrite)(?: table)? \{target\}(?: partition \(\w+\))?", re.IGNORECASE
)


@dataclass(frozen=True)
class ReachStatement:
    """A statement as a tool writes it."""

    tool: str
    name: str
    kinds: tuple[str, ...]
    # References to facts that a filter on partitions could narrow.
    narrowable: int
    text: str
    # Statements that a session runs before it: tables to write into, temporary views.
    setup: tuple[str, ...] = ()
    writes: bool = False
    # The first Spark that reads it, as 4.0.
    since: str = "3.3"

    def __str__(self) -> str:
        return f"{self.tool}: {self.name}"

    def sql(self, target: str) -> str:
        """The statement, writing that table if it writes."""
        return self.text.replace(TARGET, target)

    def setup_of(self, target: str) -> list[str]:
        """The statements that a session runs before it."""
        return [statement.replace(TARGET, target) for statement in self.setup]

    @property
    def query(self) -> str:
        """The statement without what it writes into."""
        return _INSERT.sub("", _CREATE_TABLE_AS.sub("", self.text))

    @property
    def temporary_views(self) -> dict[str, str]:
        """The views that its setup makes in the session: the statement of each by its name."""
        return {found[1]: made for made in self.setup if (found := _TEMPORARY_VIEW.match(made))}


@cache
def statements() -> tuple[ReachStatement, ...]:
    """The whole corpus, by tool."""
    files = sorted((FOLDER / "statements").glob("*.toml"))
    return tuple(_statement(path.stem, one) for path in files for one in _entries(path))


def table_statements() -> list[str]:
    """The statements that make the tables, in their order."""
    lines = (FOLDER / "tables.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [statement.strip() for statement in text.split(";\n") if statement.strip()]


def _entries(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["statement"]
    return entries


def _statement(tool: str, entry: Mapping[str, Any]) -> ReachStatement:
    return ReachStatement(
        tool,
        name=entry["name"],
        kinds=tuple(entry["kinds"]),
        narrowable=entry["narrowable"],
        text=entry["sql"].strip(),
        setup=tuple(entry.get("setup", ())),
        writes=entry.get("writes", False),
        since=entry.get("since", "3.3"),
    )
