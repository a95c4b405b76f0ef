"""Planning of a statement by a session's catalog: its tables, then the snapshots and the lists that it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from proxy.operations.query import Query
from proxy.session.catalog.facts_cache import DescribedTable, FactsMoment
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.catalog.late_answers import is_late
from proxy.session.catalog.table_sizes import read_size, size_query
from proxy.session.key_queries import KeyAnswers
from proxy.session.plan_memory import PlanMemory
from proxy.session.session_catalog import SessionCatalog
from rewriter import (
    VIEW_NESTING_MAX,
    PartitionIndexes,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    Statement,
    TableName,
    UnpinnedReason,
    catalog_at_snapshots,
    pin_snapshots,
)
from rewriter.scopes.steps import Steps
from rewriter.sql.deterministic_functions import NEWER_FUNCTIONS

# A statement's plan names its tables, then those behind its views, then those behind these, then those that lack a
# size; it may call functions that the server is not known to have.
_PLANNING_ROUNDS_MAX = VIEW_NESTING_MAX + 4

# The size of a narrowed table is remembered for this time, also past writes to it: otherwise each MERGE would ask
# for it anew. It decides whether keys are worth asking for, never what they are.
_LARGE_SIZE_S: Final = 3_600.0

# Parts of partitioned tables whose sizes one statement is planned by.
_PARTS_ASKED_MAX: Final = 4

# The rules that know files by the names of their columns.
_OF_FILES = frozenset({Rule.FILE_HINTS, Rule.RANGE_IN})


@dataclass(frozen=True)
class PinnedPlan:
    """The plan of a statement that names the snapshots of small sides as far as it can."""

    plan: Plan
    # The scans of the names whose snapshots are named, and the reasons why others are not.
    reads: Mapping[TableName, SnapshotRead]
    unpinned: Mapping[TableName, UnpinnedReason]


@dataclass(frozen=True)
class Planner:
    """Plans of one statement by what a catalog knows or asks for."""

    catalog: SessionCatalog
    limits: RewriteLimits
    known: PlanMemory
    # Steps that all plans of a decision share. Without them each plan has its own.
    steps: Steps | None = None

    async def plan(self, statement: Statement, partitions: PartitionIndexes | None = None) -> Plan | SkipReason:
        """Plan a statement by the descriptions of its tables, and by lists of their partitions.

        Where no steps are left to plan it by sizes too, the plan is one without them.
        """
        catalog, limits = self.catalog, self.limits
        server = await catalog.server_settings()
        if server.uncertainty is not None:
            return server.uncertainty
        known, grace_s = catalog.metadata, catalog.policy.grace_s
        functions = known.missing_functions.get(None)
        wanted = self.known.names_in(statement)
        limits = replace(
            limits,
            has_unknown_extensions=server.has_unknown_extensions,
            has_delta=server.has_delta,
            unconverted_formats=server.unconverted_formats,
            rules_off=limits.rules_off | (_OF_FILES if server.reads_by_position else frozenset()),
            table_names=known.table_names.intersection(str(name).lower() for name in wanted),
            missing_functions=NEWER_FUNCTIONS if functions is None else functions.value,
        )
        asked: set[TableName] = set()
        late: set[TableName] = set()
        unsized: Plan | None = None
        facts, knows_functions = known.facts, functions is not None
        for _ in range(_PLANNING_ROUNDS_MAX):
            described = facts.current(grace_s)
            late -= described.keys()
            at_hand = {name: described.get(name) for name in wanted if name in described or name in late}
            planned = self.known.plan(statement, at_hand, limits, partitions or {}, self.steps)
            if planned.calls_missing_function and not knows_functions:
                knows_functions = True
                limits = replace(limits, missing_functions=await catalog.missing_functions())
                continue
            if planned.skip is not None:
                return planned.skip if unsized is None else _with_late(unsized, frozenset(late))
            if not planned.missing:
                if unsized is None and await self._find_sizes(planned):
                    unsized = planned
                    continue
                if unsized is not None:
                    # The table may have grown since its remembered size was asked for.
                    known.large_sizes.drop(_too_small(planned))
                return _with_late(planned, frozenset(late))
            wanted |= planned.missing
            # Other statements may have read the tables behind a view.
            missing = planned.missing - described.keys()
            # Tables that were asked about before and are still missing change meanwhile, or are more than the
            # session may keep.
            if missing and (missing <= asked or self._are_changing(missing)):
                break
            late |= await catalog.describe(missing)
            asked |= missing
        return SkipReason.TABLES_UNSETTLED

    def _are_changing(self, tables: frozenset[TableName]) -> bool:
        """True if one of these gets other columns now: its description would not be remembered."""
        return bool(self.catalog.metadata.facts.moment().fence.changed_columns(tables))

    async def _find_sizes(self, planned: Plan) -> bool:
        """Find the sizes of described tables and parts of tables that have none; stop at the first late answer.

        True if any got one.
        """
        known, settings, large = self.catalog.metadata, self.catalog.settings, _too_small(planned)
        has_found = False
        for name in sorted(planned.unsized, key=str) if settings.asks_sizes else ():
            remembered = known.large_sizes.get(name) if name in large else None
            if remembered is not None:
                has_found |= known.facts.add_size(name, remembered.value)
                continue
            size_bytes, late = await self._ask_for_size(size_query(name.sql, settings))
            if size_bytes is not None:
                if name in large:
                    known.large_sizes.keep(name, size_bytes, _LARGE_SIZE_S)
                has_found |= known.facts.add_size(name, size_bytes)
            if late:
                return has_found
        for part in sorted(planned.unsized_parts, key=str)[:_PARTS_ASKED_MAX] if settings.asks_sizes else ():
            size_bytes, late = await self._ask_for_size(size_query(part.text, settings))
            if size_bytes is not None:
                has_found |= known.facts.add_part_size(part, size_bytes)
            if late:
                break
        return has_found

    async def _ask_for_size(self, query: Query) -> tuple[int | None, bool]:
        """The size that Spark's plan of a query has, if it has one; and whether the answer was late."""
        unsized = self.catalog.metadata.unsized
        if unsized.holds(query.sql):
            return None, False
        answer = await self.catalog.policy.ask(query)
        size_bytes = read_size(answer)
        if size_bytes is None:
            unsized.add(query.sql)
        return size_bytes, size_bytes is None and is_late(answer)

    async def pinned(self, planned: Plan) -> PinnedPlan:
        """The plan of the statement with the snapshots of its small sides, where any can be named."""
        known, ask, settings = self.catalog.metadata, self.catalog.policy.ask, self.catalog.settings
        asked_at = known.facts.moment()
        found = await known.snapshots.current(ask, planned.pinnable, settings, known.unanswered)
        reads = {name: what for name, what in found.items() if isinstance(what, SnapshotRead)}
        unpinned = {name: what for name, what in found.items() if isinstance(what, UnpinnedReason)}
        again = await self._planned_at(planned, reads, asked_at) if reads else None
        if again is None:
            return PinnedPlan(planned, {}, {**unpinned, **dict.fromkeys(reads, UnpinnedReason.NOT_PROVEN)})
        return PinnedPlan(again, reads, unpinned)

    async def _planned_at(
        self, planned: Plan, reads: Mapping[TableName, SnapshotRead], asked_at: FactsMoment
    ) -> Plan | None:
        """The plan of the statement that names these snapshots, if it still asks for keys."""
        facts, at = self.catalog.metadata.facts, {name: scanned.snapshot_id for name, scanned in reads.items()}
        statement = pin_snapshots(planned.statement, at)
        if statement is None:
            return None
        known = catalog_at_snapshots(facts.current(self.catalog.policy.grace_s), at)
        for version in (name.at(snapshot_id) for name, snapshot_id in at.items()):
            if version in known:
                facts.add(DescribedTable(version, known[version]), asked_at)
        again = await self.plan(statement, planned.partitions)
        return again if isinstance(again, Plan) and again.key_queries else None

    async def with_lists(self, planned: Plan, answers: KeyAnswers) -> Plan:
        """The plan with the lists of partitions that it wants by these answers; the same plan if it wants none."""
        wanted = planned.wants_lists(answers)
        if not wanted:
            return planned
        found = await self.catalog.partitions(wanted)
        lists = {name: found[name].index if name in found else None for name in wanted}
        again = await self.plan(planned.statement, {**planned.partitions, **lists})
        return again if isinstance(again, Plan) else planned


def _too_small(planned: Plan) -> frozenset[TableName]:
    """The tables that are not known to be larger than what would narrow them."""
    return frozenset(scan.reference.name for scan in planned.scans if scan.skip is SkipReason.SMALL_SIDE_LARGER)


def _with_late(planned: Plan, late: frozenset[TableName]) -> Plan:
    """The plan, with DESCRIPTION_LATE for tables that it took for unknown."""
    scans = (
        replace(scan, skip=SkipReason.DESCRIPTION_LATE)
        if scan.skip is SkipReason.UNKNOWN_TABLE and scan.reference.name in late
        else scan
        for scan in planned.scans
    )
    return replace(planned, scans=tuple(scans), late=late)
