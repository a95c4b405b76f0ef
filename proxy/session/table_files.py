"""The files of tables as a session may know them, and the splits that Spark makes of them."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.session.catalog.file_index import IndexOverview, words
from proxy.session.catalog.split_packing import SplitPacking
from proxy.session.catalog.table_sizes import read_size, size_query
from proxy.session.key_queries import KeyAnswers
from proxy.session.layout.iceberg_file_counts import FileCounts, file_counts
from proxy.session.layout.iceberg_files import columns_asked
from proxy.session.session_catalog import SessionCatalog
from proxy.session.table_lookup import with_indexed
from proxy.statements.statement_class import StatementClass
from rewriter import Plan, Rewrite, RewriteLimits, TableName
from rewriter.files.file_index import FileIndex


@dataclass(frozen=True)
class TableFiles:
    """The files that a catalog's session may know, and what is asked about their splits."""

    catalog: SessionCatalog

    def current_overview(self) -> IndexOverview | None:
        """The tables of the file index, where that needs no query."""
        return self.catalog.shared.files.current_overview(self.catalog.metadata)

    async def indexed(self) -> IndexOverview:
        """The tables of the file index, as far as the session may read it."""
        policy = self.catalog.policy
        return await self.catalog.shared.files.overview(policy.ask, self.catalog.metadata, policy.splits_grace_s)

    async def wanted(
        self, planned: Plan, answers: KeyAnswers, limits: RewriteLimits, *, of_all: bool
    ) -> dict[TableName, FileIndex]:
        """The files of the tables whose files a plan wants to know, if they are listed anywhere.

        Without `of_all`, those of tables that nothing narrows are left out.
        """
        found = {}
        alone = planned.grouped_alone(answers)
        wanted = set(planned.wants_files(answers, for_splits=self.packing.is_on(limits)))
        for name in sorted(wanted if of_all else wanted - alone, key=str):
            index = await (self._small_files(name, planned) if name in alone else self._files(name, planned))
            if index is not None:
                found[name] = index
        return found

    async def _small_files(self, name: TableName, planned: Plan) -> FileIndex | None:
        """The files of a table that nothing narrows; None where they are not many and small."""
        shared, known, files_min = self.catalog.shared, self.catalog.metadata, self.packing.files_min
        facts = self.catalog.facts(name)
        if facts is None:
            return None
        if facts.iceberg is not None:
            small = await shared.iceberg_files.small_files(self.catalog.policy.ask, facts, known, files_min)
            if small.is_known:
                until = shared.clock() + shared.config.files.tables_ttl_s
                known.add_iceberg(name, small.index is not None, until=until)
            return small.index
        # Rows of the index take a query. Only a table of many small files is worth it, since only their sizes are
        # needed.
        _ = await self.indexed()
        return await self._files(name, planned) if shared.files.has_small_files(facts, known, files_min) else None

    async def _files(self, name: TableName, planned: Plan) -> FileIndex | None:
        shared, known, policy = self.catalog.shared, self.catalog.metadata, self.catalog.policy
        described = self.catalog.described(name)
        facts = described.facts
        # Delta reads the bounds of its files itself, from its own log.
        if facts is None or facts.delta is not None:
            return None
        if facts.iceberg is not None:
            return await shared.iceberg_files.files(policy.ask, facts, columns_asked(planned, name), known)
        index = await shared.files.files(policy.ask, facts, known, policy.splits_grace_s)
        # By now the columns of the index are known.
        again = await with_indexed(policy.ask, facts, known, shared.files, policy.splits_grace_s)
        if again != facts:
            known.facts.add_to(described, again)
        return index

    def may_name_small_files(self, statement: StatementClass, *, believes_ungrouped: bool) -> bool | None:
        """True if a statement may read a table of many small files; None where that was not asked yet.

        With `believes_ungrouped`, one whose scans were found to keep their splits is not looked at again.
        """
        shared, known, settings = self.catalog.shared, self.catalog.metadata, self.catalog.shared.config.splits
        if not (settings.enabled and settings.unnarrowed_scans and statement.names_read):
            return False
        if not statement.keeps_meanings:
            # A statement that writes may write one file for each task.
            return False
        if believes_ungrouped and known.ungrouped.holds(statement.text):
            return False
        by_index = shared.files.may_name_small_files(statement.text, known, settings.saved_min)
        if by_index or not known.iceberg_sizes:
            return by_index
        if by_index is None:
            return None
        return known.may_name_small_iceberg(words(statement.text), shared.clock())

    @property
    def packing(self) -> SplitPacking:
        """The split packing, which makes split hints from these files."""
        deadline_s = self.catalog.settings.query_deadline_s
        settings, known = self.catalog.shared.config.splits, self.catalog.metadata.packings
        return SplitPacking(settings, known, deadline_s, self.catalog.policy.splits_grace_s)

    def are_splits_current(self, planned: Plan) -> bool:
        """True if no answer that decides about the splits of a plan's scans has expired."""
        shared, settings = self.catalog.shared, self.catalog.last_settings
        if settings is None or settings.until <= shared.clock() or not self.catalog.is_current(planned):
            return False
        if shared.config.files.index and self.current_overview() is None:
            return False
        names = planned.wants_packings({})
        return self.catalog.metadata.packings.are_current(names) and not any(map(self._is_listing, names))

    def _is_listing(self, name: TableName) -> bool:
        """True if another session is asking for a table's files, so that this one went on without them."""
        facts = self.catalog.facts(name)
        lists = (self.catalog.shared.files, self.catalog.shared.iceberg_files)
        return facts is not None and any(one.is_under_way(facts, self.catalog.metadata) for one in lists)

    async def delta_bytes(self, rewrite: Rewrite) -> dict[tuple[TableName, str], tuple[int, int]]:
        """The bytes of Delta tables by their names and predicates: of all files, and of those that Delta keeps."""
        settings, ask = self.catalog.settings, self.catalog.policy.ask
        scans = {
            (outcome.scan.reference.name, outcome.predicate): None
            for outcome in rewrite.scans
            if outcome.predicate is not None and outcome.scan.facts is not None and outcome.scan.facts.delta
        }
        names = dict.fromkeys(name for name, _ in scans)
        totals = {name: read_size(await ask(size_query(name.sql, settings))) for name in names}
        found = {}
        for name, predicate in scans:
            total, kept = totals[name], read_size(await ask(size_query(name.sql, settings, predicate)))
            if total is not None and kept is not None:
                found[name, predicate] = total, kept
        return found

    async def file_counts(self, planned: Plan) -> dict[TableName, FileCounts]:
        """Files and bytes of the Iceberg tables that could be narrowed, where Iceberg tells them."""
        found = {}
        for scan in planned.scans:
            name, facts = scan.reference.name, scan.facts
            if name in found or name.version or facts is None or facts.iceberg is None or facts.full_name is None:
                continue
            counts = await file_counts(self.catalog.policy.ask, facts.full_name, self.catalog.shared.config.files)
            if counts is not None:
                found[name] = counts
        return found
