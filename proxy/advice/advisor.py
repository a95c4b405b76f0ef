"""The advisor: finds the rows that recorded statements need, and samples their tables, by queries that only read.

The stages ask their queries in a session of their own, by `ask_driver`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from proxy.advice.needed_rows import (
    LeftScan,
    NeededRows,
    as_laid_out,
    ask_keys,
    key_columns,
    left_as_they_are,
    needed_rows,
    plan_with_all_columns,
    wanted_tables,
)
from proxy.advice.recorded import RecordedStatement
from proxy.advice.table_sample import TableSample, UnmeasuredError, sample
from proxy.operations.query import ask_driver
from proxy.session.catalog.table_sizes import read_size, size_query
from proxy.session.decider import SessionCatalogs
from proxy.session.decision import DecisionTerms
from proxy.session.decision_context import limits_of
from proxy.session.plan_memory import PlanMemory
from proxy.session.planning import Planner
from proxy.session.session_catalog import SessionCatalog
from proxy.session.session_settings import SessionSettings
from proxy.session.shared_state import SharedState
from rewriter import KeyQuery, Keys, Plan, SkipReason, TableFacts, TableName, parse


@dataclass(frozen=True)
class AdviceSettings:
    """The limits of the work, and the names that commands use."""

    days: float
    index: str
    # Files of a layout have about this size, and a table of less has one file.
    file_bytes: int
    # Bytes of each table's files that are read for its sample.
    sample_bytes: int
    tables_max: int
    query_deadline_s: float
    # As in the configuration: the length of the list of files that a statement can skip.
    hint_chars_max: int


@dataclass
class Found:
    """The findings about the statements: the rows that they need, by table, and scans that no layout helps."""

    needed: dict[TableName, list[NeededRows]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[TableName, TableFacts] = field(default_factory=dict)
    left: list[LeftScan] = field(default_factory=list)

    def tables(self) -> list[TableName]:
        """The tables that a layout may help, those whose statements took most seconds first."""
        candidates = [table for table, needed in self.needed.items() if _may_help(self.facts[table], needed)]
        return sorted(candidates, key=lambda table: -_seconds(self.needed[table]))


def _may_help(facts: TableFacts, needed: Sequence[NeededRows]) -> bool:
    """True if statements need rows by a column that neither partitions nor indexed files tell apart.

    Delta keeps the bounds of files itself: it depends on them whether a column tells files apart.
    """
    told = set(map(str.lower, facts.partition_columns))
    if facts.delta is None:
        told |= facts.file_columns
    return any(one.columns - told for one in needed)


class Advisor:
    """Looks at the statements of one database after the other, and then at the tables."""

    def __init__(self, shared: SharedState, settings: AdviceSettings, progress: Callable[[str], None]) -> None:
        self._shared = shared
        self._settings = settings
        self._progress = progress
        terms = DecisionTerms(SessionSettings.configured(shared.config, {}), scope="", owner="")
        self._limits = limits_of(shared, terms)
        # Sizes of tables: those in their facts, or Spark's estimates for tables without partitions.
        self._sizes: dict[TableName, int | None] = {}

    async def look_at(self, statements: Sequence[RecordedStatement], found: Found) -> None:
        """Plan the statements of one database, and ask for their keys."""
        catalog = SessionCatalogs(self._shared).of_state(None)
        # Names mean the same in all statements of a database.
        keys: dict[KeyQuery, Keys | SkipReason] = {}
        for number, statement in enumerate(statements, 1):
            where = f" of {statement.database}" if statement.database else ""
            self._progress(f"Statement {number} of {len(statements)}{where}: asking for its keys")
            await self._look_at_one(catalog, statement, keys, found)

    async def _look_at_one(
        self,
        catalog: SessionCatalog,
        statement: RecordedStatement,
        keys: dict[KeyQuery, Keys | SkipReason],
        found: Found,
    ) -> None:
        chars_max = self._shared.config.rewrite.statement_chars_max
        parsed = parse(statement.text, chars_max=chars_max, has_file_index=True, has_views=True)
        if isinstance(parsed, SkipReason):
            found.left.append(LeftScan(statement, None, parsed, None))
            return
        planned = await Planner(catalog, self._limits, PlanMemory(0)).plan(parsed)
        if isinstance(planned, SkipReason):
            found.left.append(LeftScan(statement, None, planned, None))
            return
        found.left += left_as_they_are(statement, planned)
        for name, facts in wanted_tables(planned).items():
            if await self._is_one_file(name, facts):
                continue
            await self._look_at_table(statement, planned, name, keys, found)

    async def _look_at_table(
        self,
        statement: RecordedStatement,
        planned: Plan,
        name: TableName,
        keys: dict[KeyQuery, Keys | SkipReason],
        found: Found,
    ) -> None:
        possible = plan_with_all_columns(planned, name, self._limits)
        bytes_max, deadline_s = self._shared.config.rewrite.key_query_bytes_max, self._settings.query_deadline_s
        for each in (planned, possible):
            await ask_keys(each, keys, bytes_max=bytes_max, deadline_s=deadline_s)
        for one in needed_rows(statement, planned, possible, name, keys):
            if isinstance(one, LeftScan):
                found.left.append(one)
            else:
                facts = planned.catalog[name]
                assert facts is not None  # noqa: S101 - one of the wanted tables
                found.facts[one.table] = as_laid_out(facts)
                found.needed[one.table].append(one)

    async def _is_one_file(self, name: TableName, facts: TableFacts) -> bool:
        """True if a table is known to be so small that no file of it can be left out, as most dimensions are."""
        table = facts.full_name or name
        if table not in self._sizes:
            size_bytes = facts.size_bytes
            if size_bytes is None and not facts.partition_columns:
                size_bytes = read_size(await ask_driver(size_query(table.sql, self._shared.config.catalog)))
            self._sizes[table] = size_bytes
        size_bytes = self._sizes[table]
        return size_bytes is not None and size_bytes < self._settings.file_bytes

    async def measure(self, table: TableName, found: Found) -> TableSample | str:
        """Look at a table in the columns that statements join and filter it by; a sentence where that fails."""
        facts = found.facts[table]
        partitions = tuple(name.lower() for name in facts.partition_columns)
        told = frozenset[str]().union(*(needed.columns for needed in found.needed[table]))
        known = set(key_columns(facts))
        names = [name for name in dict.fromkeys((*partitions, *sorted(told))) if name in known]
        settings = self._settings
        try:
            return await sample(
                facts, names, bytes_max=settings.sample_bytes, deadline_s=settings.query_deadline_s
            )
        except UnmeasuredError as error:
            return str(error)


def statements_of(needed: Iterable[NeededRows]) -> list[RecordedStatement]:
    """The statements that scans are of, each once."""
    return list(dict.fromkeys(one.statement for one in needed))


def _seconds(needed: Iterable[NeededRows]) -> float:
    return sum(statement.seconds for statement in statements_of(needed))
