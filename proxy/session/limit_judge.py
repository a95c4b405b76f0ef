"""The judgement of one statement by its user's limits: what it would read, and whether it may.

The partitions are counted in the table's list, by the statement's own filters and what is inserted. Where these do
not tell, as for a view or for `ds > current_date()`, the plan of Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Final

from proxy.limits.limits import Finding, Limit, Result, ScanRead, judge, limit_of, shown, unknown
from proxy.session.catalog.plan_scans import (
    PlanScan,
    PlanScans,
    plan_query,
    planned_by,
    read_scans,
    was_refused,
)
from proxy.session.layout.iceberg_files import read_summary, summary_query
from proxy.session.session_catalog import SessionCatalog
from proxy.statements.statement_class import StatementClass
from rewriter import VIEW_NESTING_MAX, Rewrite, ScanOutcome, Statement, TableFacts, TableKind, TableName
from rewriter.domains.consumers import ICEBERG_LIST_MAX
from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import UnreadableKeyError, literal
from rewriter.files.file_index import FileIndex
from rewriter.files.partition_files import FileSum, PartitionFiles
from rewriter.partitions.filter_tree import And
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.pruning import as_filter, kept_count
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.planning.partitions_read import StatementReads, TableRead, partitions_read
from rewriter.predicates.iceberg_predicate import files_left
from rewriter.sql.classify import COMMENT_OR_SPACE, QUERY_FIRST_WORDS
from rewriter.sql.statement import parse_to_read

# First words of statements that read no table's rows, unless a query stands in them.
_READS_NOTHING: Final = frozenset(
    """
    show describe desc explain use set reset list add drop alter truncate msck refresh uncache clear comment
    load grant revoke declare
    """.split()
)
_WITH_QUERIES: Final = frozenset({"set", "declare"})
# A query may begin with FROM, and be TABLE with a name. In a setting such words are names.
_OF_VARIABLES: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+(?:DECLARE|SET(?:{COMMENT_OR_SPACE})++VAR(?:IABLE)?+)\b", re.IGNORECASE | re.DOTALL
)
_OTHER_QUERY: Final = re.compile(r"\b(?:FROM|TABLE)\b", re.IGNORECASE)
# Formats whose own facts tell what a scan reads.
_FORMATS: Final = frozenset({"delta", "iceberg"})
# A statement's plan names its tables, then those behind its views.
_ROUNDS_MAX: Final = VIEW_NESTING_MAX + 2
# First words of statements that EXPLAIN takes.
_PLANNED: Final = QUERY_FIRST_WORDS | {"values", "table", "cache"}
_NOT_TOLD: Final = "Spark did not tell its plan"


def may_read(statement: StatementClass) -> bool:
    """True if a statement may read rows of a table."""
    word = statement.first_word
    has_query = word in _WITH_QUERIES and _may_have_query(statement.text)
    return word not in _READS_NOTHING or has_query or not statement.begins_clearly


def _may_have_query(text: str) -> bool:
    """True if a SET or DECLARE may have a query in it."""
    return "select" in text.lower() or bool(_OF_VARIABLES.match(text) and _OTHER_QUERY.search(text))


class LimitJudge:
    """Judges one statement, as the session's catalog knows its tables."""

    def __init__(self, catalog: SessionCatalog, statement: StatementClass, limits: Sequence[Limit]) -> None:
        self._catalog = catalog
        self._text = statement.text
        self._class = statement
        self._limits = limits
        self._reads: StatementReads | None = None
        # What failed once is not tried again.
        self._was_read = False
        # The time that judging took, answers included.
        self.seconds = 0.0
        # True if Spark cannot plan the statement.
        self._is_refused = False
        # Tables of which no plan of Spark tells more.
        self._untold: set[str] = set()
        # Partition lists, by the full names of tables.
        self._indexes: dict[TableName, PartitionIndex] = {}
        # The files of Iceberg tables, by what the text leaves of a table.
        self._files_listed: dict[tuple[TableName, Cover], FileIndex] = {}

    async def is_within(self) -> bool:
        """True if the original certainly is within the limits, whatever is inserted."""
        with self._timed():
            await self._read()
            return self._judged(self._original) == ()

    @property
    def original(self) -> tuple[Finding, ...]:
        """The limits that the original meets, once it has been read. No plan is asked for."""
        found = self._judged(self._original)
        return (unknown(self._limits, _NOT_TOLD),) if found is None else found

    async def findings(self, rewrite: Rewrite | None) -> tuple[Finding, ...]:
        """The limits that the statement meets as it is sent: with what is inserted, or as the original."""
        with self._timed():
            await self._read()
            scans = self._original if rewrite is None else self._by_text(rewrite)
            found = self._judged(scans)
            if found is None or not all(one.is_certain or one.table in self._untold for one in found):
                found = await self._judged_by_plan(self._text if rewrite is None else rewrite.text, scans or [])
            return tuple(self._helping(one) for one in found)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        clock = self._catalog.shared.clock
        start = clock()
        try:
            yield
        finally:
            self.seconds += clock() - start

    # --- by the statement's own filters

    async def _read(self) -> None:
        """Read what the text tells, with the descriptions and the partition lists of its tables."""
        if self._was_read:
            return
        self._was_read = True
        statement = await self._statement()
        if statement is None:
            return
        facts, catalog = self._catalog.metadata.facts, self._catalog
        for _ in range(_ROUNDS_MAX):
            reads = partitions_read(statement, facts.current(catalog.policy.grace_s))
            if not reads.missing or await catalog.describe(reads.missing):
                break
        # Tables that were described too late are still missing.
        self._reads = StatementReads(is_whole=False) if reads.missing else reads
        await self._list({one.name: one.facts for one in self._reads.tables})
        for read in self._reads.tables:
            await self._list_files(read)

    async def _statement(self) -> Statement | None:
        settings, analysis = self._catalog.shared.config.rewrite, self._catalog.shared.analysis
        if self._class.depends_on_quoting and not await self._catalog.quoting_is_default():
            return None
        if not analysis.take(len(self._text)):
            return None
        try:
            return parse_to_read(self._text, chars_max=settings.statement_chars_max)
        finally:
            analysis.give_back(len(self._text))

    async def _list(self, tables: dict[TableName, TableFacts | None]) -> None:
        """List the partitions of tables that a limit names."""
        named = {
            name: scan.table
            for name, facts in tables.items()
            if facts is not None and facts.partition_columns
            if limit_of(self._limits, scan := _scan(name, facts)) and scan.table not in self._indexes
        }
        listed = await self._catalog.partitions(named)
        self._indexes |= {named[name]: one.index for name, one in listed.items()}

    async def _list_files(self, read: TableRead) -> None:
        """List the files of an Iceberg table by the bounds of the partition columns that the text filters."""
        facts, catalog = read.facts, self._catalog
        limit = limit_of(self._limits, _scan(read.name, facts))
        if facts is None or facts.iceberg is None or limit is None or read.within.is_all:
            return
        if limit.section.bytes_max or limit.section.files_max:
            names = {column for box in read.within.boxes for column, _ in box.domains}
            listed = await catalog.shared.iceberg_files.files(catalog.policy.ask, facts, names, catalog.metadata)
            if listed is not None:
                self._files_listed[read.name, read.within] = listed

    @cached_property
    def _original(self) -> list[ScanRead] | None:
        return self._by_text(None)

    def _judged(self, scans: list[ScanRead] | None) -> tuple[Finding, ...] | None:
        return None if scans is None else tuple(judge(self._limits, scans))

    def _by_text(self, rewrite: Rewrite | None) -> list[ScanRead] | None:
        """The scans by the text's own filters and what is inserted; None if the text does not tell its tables."""
        if self._reads is None or not self._reads.is_whole:
            return None
        outcomes = {one.scan.reference: one for one in rewrite.scans} if rewrite is not None else {}
        return [
            self._by_filters(one, outcomes.get(one.reference) if one.reference is not None else None)
            for one in self._reads.tables
        ]

    def _by_filters(self, read: TableRead, outcome: ScanOutcome | None) -> ScanRead:
        scan, facts = _scan(read.name, read.facts), read.facts
        limit, index = limit_of(self._limits, scan), self._indexes.get(scan.table)
        if facts is None or limit is None:
            return scan
        if facts.provider in _FORMATS and not facts.skips_files_itself:
            # A version, a branch or a path: what is described of the table does not hold for what is read.
            return replace(scan, columns=None)
        if not (facts.pruned_by or facts.skips_files_itself):
            return replace(scan, size_bytes=self._size_bytes(read.name, facts))
        covers = [read.within, *(outcome.covers if outcome is not None else ())]
        filtered = read.is_within_times or any(_is_filter(cover, facts) for cover in covers)
        scan = replace(
            scan, is_filtered=filtered or (False if read.is_exact else None), is_at_most=not read.is_exact
        )
        if facts.skips_files_itself:
            if not _may_be_told(limit, facts):
                self._untold.add(shown(scan.table))
            # The format may leave out more files, by any column.
            return replace(self._of_format(scan, read, outcome), is_at_most=True, may_read_none=True)
        return scan if index is None else self._counted(scan, facts, index, covers)

    def _of_format(self, scan: ScanRead, read: TableRead, outcome: ScanOutcome | None) -> ScanRead:
        """The scan of a Delta or Iceberg table with the most that is left of it, as far as that is known."""
        iceberg = read.facts.iceberg if read.facts is not None else None
        if read.facts is None or iceberg is None:
            return replace(scan, size_bytes=read.facts.size_bytes if read.facts is not None else None)
        if read.name.version:
            return scan  # the list is of the current snapshot
        listed = self._files_listed.get((read.name, read.within))
        left = outcome.files if outcome is not None else None
        left = left if left is not None else files_left(read.within, iceberg.partitioning, listed)
        return scan if left is None else replace(scan, files=left.kept, size_bytes=left.kept_bytes)

    def _counted(
        self, scan: ScanRead, facts: TableFacts, index: PartitionIndex, covers: Sequence[Cover]
    ) -> ScanRead:
        """The scan with the numbers of what covers leave of a table."""
        total = index.count
        covers = [cover for cover in covers if not cover.is_all]
        try:
            kept = kept_count(index, covers) if covers else total
            files = self._files(facts, index, covers)
        except NotIndexableError:
            return replace(scan, partitions=total, partitions_total=total, is_at_most=True)
        share = self._share(scan.table, facts, kept, total)
        known = files if files is not None else (None, share)
        return replace(scan, partitions=kept, partitions_total=total, files=known[0], size_bytes=known[1])

    def _files(self, facts: TableFacts, index: PartitionIndex, covers: Sequence[Cover]) -> tuple[int, int] | None:
        """The files and bytes of the partitions that covers leave, where the file index has been fetched."""
        files = self._catalog.shared.files.last(facts, self._catalog.metadata)
        by_partition = PartitionFiles.of(files.files, index.keys.columns) if files is not None else None
        if by_partition is None:
            return None
        found = by_partition.sum_of(index.matching(And(tuple(map(as_filter, covers)))))
        return None if found is None else (found.files, found.size_bytes)

    def _size_bytes(self, name: TableName, facts: TableFacts) -> int | None:
        return facts.size_bytes if facts.size_bytes is not None else self._catalog.indexed_bytes(name)

    def _share(self, name: TableName, facts: TableFacts, kept: int, total: int) -> int | None:
        """The bytes of some partitions, as if all were of one size."""
        size_bytes = self._size_bytes(name, facts)
        return None if size_bytes is None else size_bytes * kept // max(1, total)

    # --- by the plan of Spark

    async def _judged_by_plan(self, text: str, by_text: Sequence[ScanRead]) -> tuple[Finding, ...]:
        word = self._class.first_word
        is_clear = self._class.begins_clearly or self._reads is not None
        if word in {"execute", "explain"} or not is_clear:
            # Spark may execute it in order to explain it.
            return (unknown(self._limits, _NOT_TOLD),)
        known, digest = self._catalog.metadata.plans, blake2b(text.encode(errors="replace")).digest()
        may_keep = self._catalog.policy.is_session_unchanged
        plan = await known.get_or_ask(digest, partial(self._plan, text), may_keep=may_keep)
        if plan is None:
            # A statement that Spark cannot plan fails by itself.
            fails = self._is_refused and word in _PLANNED
            return () if fails else (unknown(self._limits, _NOT_TOLD),)
        names = {scan.table for scan in plan.scans}
        await self._catalog.look_up(names)
        facts = {name: self._catalog.facts(name) for name in names}
        await self._list(facts)
        scans = [
            self._by_plan(scan, facts[scan.table])
            if scan.snapshot_id is None
            else await self._at_snapshot(scan, facts[scan.table], by_text)
            for scan in plan.scans
        ]
        found = tuple(dict.fromkeys(judge(self._limits, scans)))
        return found if plan.is_whole else (*found, unknown(self._limits, _NOT_TOLD))

    async def _plan(self, text: str) -> tuple[PlanScans | None, float]:
        """The scans that Spark plans for a text, and the seconds for which they count."""
        statement = None
        if self._class.first_word == "create":
            chars_max = self._catalog.shared.config.rewrite.statement_chars_max
            statement = parse_to_read(text, chars_max=chars_max)
        planned = planned_by(text) if statement is None else statement.planned_text
        answer = await self._catalog.policy.ask(plan_query(planned, self._catalog.settings))
        self._is_refused = was_refused(answer)
        found = read_scans(answer)
        return found, 0.0 if found is None else self._catalog.settings.facts_ttl_s

    def _by_plan(self, planned: PlanScan, facts: TableFacts | None) -> ScanRead:
        scan = _scan(planned.table, facts)
        index = self._indexes.get(scan.table)
        if facts is None or not (planned.is_known or facts.partition_columns):
            return scan
        # Delta may turn a filter on another column into one on a partition column, which no plan shows.
        tells_filters = planned.is_filtered or (planned.is_known and not facts.may_generate_partitions)
        is_filtered, size_bytes = planned.is_filtered if tells_filters else None, planned.size_bytes
        if not facts.partition_columns:
            if size_bytes is None and not facts.skips_files_itself:
                size_bytes = self._size_bytes(planned.table, facts)
            return replace(scan, size_bytes=size_bytes, is_filtered=is_filtered)
        total = index.count if index is not None else None
        # A plan that does not tell how many are left of such a table has left out none.
        kept = total if planned.partitions is None else planned.partitions
        if size_bytes is None and kept is not None and total:
            size_bytes = self._share(planned.table, facts, kept, total)
        is_at_most = not planned.is_known
        scan = replace(scan, partitions=kept, partitions_total=total, is_at_most=is_at_most)
        return replace(scan, size_bytes=size_bytes, is_filtered=is_filtered)

    async def _at_snapshot(
        self, planned: PlanScan, facts: TableFacts | None, by_text: Sequence[ScanRead]
    ) -> ScanRead:
        """A scan of an Iceberg table, which reads all files of its snapshot unless a filter leaves out some."""
        scan, snapshot_id = _scan(planned.table, facts), planned.snapshot_id
        limit = limit_of(self._limits, scan)
        if facts is None or facts.iceberg is None or limit is None or snapshot_id is None:
            return scan
        told: set[bool | None] = {planned.is_filtered} - {None}
        # Filters that are pushed down may be on any column. The text decides where it filters all scans of the
        # table alike.
        told = told or {one.is_filtered for one in by_text if one.table == scan.table}
        scan = replace(
            scan,
            is_filtered=told.pop() if len(told) == 1 else None,
            is_at_most=planned.is_filtered is None,
        )
        if not (limit.section.bytes_max or limit.section.files_max):
            return scan
        known, may_keep = self._catalog.metadata.snapshot_sums, self._catalog.policy.is_session_unchanged
        ask = partial(self._sum_of, scan.table, snapshot_id)
        found = await known.get_or_ask((scan.table, snapshot_id), ask, may_keep=may_keep)
        return scan if found is None else replace(scan, files=found.files, size_bytes=found.size_bytes)

    async def _sum_of(self, table: TableName, snapshot_id: int) -> tuple[FileSum | None, float]:
        """The files of a snapshot, and the seconds for which the answer counts."""
        config = self._catalog.shared.config
        found = read_summary(await self._catalog.policy.ask(summary_query(table, snapshot_id, config.files)))
        return found, config.catalog.facts_ttl_s

    # --- what helps

    def _helping(self, found: Finding) -> Finding:
        """The finding with the filter to add."""
        if not found.is_certain or not found.columns:
            return found
        column = found.columns[0]
        example = self._example(found)
        such = f", such as {example}," if example else ","
        advice = f" Add a filter on {column}{such} or join a table that is filtered on it."
        return replace(found, sentence=f"{found.sentence}{advice}")

    def _example(self, found: Finding) -> str:
        """A filter that the last partitions pass, as many as the limit allows."""
        index = next((one for table, one in self._indexes.items() if shown(table) == found.table), None)
        if index is None or found.result is Result.UNKNOWN:
            return ""
        column, left, first = index.keys.columns[0], found.partitions_max or 1, None
        try:
            for value, count in reversed(list(index.counts(column))):
                left -= count
                if left < 0 or value is None:
                    break
                first = value
            return "" if first is None else f"{column} >= {literal(index.keys.type_names[0], first)}"
        except (NotIndexableError, UnreadableKeyError):
            return ""


def _scan(name: TableName, facts: TableFacts | None) -> ScanRead:
    if facts is None:
        return ScanRead(name, None)
    # Delta quotes a name of other characters than letters, digits and underscores, which is not read.
    has_full_name = facts.full_name is not None or facts.kind is not TableKind.TABLE
    return ScanRead(facts.full_name or name, facts.pruned_by, has_full_name=has_full_name)


def _may_be_told(limit: Limit, facts: TableFacts) -> bool:
    """True if Spark's plan may tell more about a Delta or Iceberg table, as the limit asks for it."""
    section = limit.section
    return bool(section.partition_filter or section.bytes_max or (section.files_max and facts.iceberg is not None))


def _is_filter(cover: Cover, facts: TableFacts) -> bool:
    """True if each box of a cover leaves out values of a partition column, and not null alone."""
    return all(any(_leaves_out(column, domain, facts) for column, domain in box.domains) for box in cover.boxes)


def _leaves_out(column: str, domain: Domain, facts: TableFacts) -> bool:
    if column.lower() in facts.hashed_columns and domain.width > ICEBERG_LIST_MAX:
        return False
    is_partition = column.lower() in {name.lower() for name in facts.pruned_by}
    return is_partition and domain.cuts != Domain.all(domain.type_name).cuts
