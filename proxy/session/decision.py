"""Decisions about statements: rewritten or not, by which keys, and why not. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from proxy.limits.limits import Finding
from proxy.operations.dispatch import always
from proxy.operations.key_check import ASK_FIRST, CheckVerdict, KeyTerms
from proxy.operations.query import Work
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.consistency.read_set import ReadSet
from proxy.session.feedback.cost_gate import Fact, GateReport, Run, StatementKey, Way
from proxy.session.feedback.cost_inputs import has_own_filters_alone
from proxy.session.feedback.quarantine_list import QuarantineEntry
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.key_queries import UsableKeys
from proxy.session.layout.iceberg_file_counts import FileCounts
from proxy.session.session_settings import SessionSettings
from proxy.session.timings import Timings
from rewriter import KeyQuery, Keys, Plan, Rewrite, SkipReason, TableName, UnpinnedReason
from rewriter.partitions.index import PartitionIndex
from rewriter.vocabulary.cited import listed

# Reasons of scans of dimensions, and of CTEs, whose tables have scans of their own.
NO_FACTS: Final = frozenset({SkipReason.NOT_A_TABLE, SkipReason.NOT_PARTITIONED})


@dataclass(frozen=True)
class DecisionTerms:
    """The terms of a decision: settings and state of the session, and whether it is only explained."""

    settings: SessionSettings
    # Statements of one scope share the lessons of the cost gate and the quarantine.
    scope: str
    # The user whom lessons count for (`owner_of`).
    owner: str
    # Names this session in remembered keys: no two sessions share one.
    asker: str = ""
    # The digest of the session's state, for metadata that sessions of one state share; None where it is like no
    # other.
    state: bytes | None = None
    # The reason why names may mean other tables than the described ones, or other functions than Spark's, if there
    # is one (`SessionState.hidden_names`).
    hidden_names: SkipReason | None = None
    # True if the session may have variables (`SessionState.has_variables`).
    has_variables: bool = False
    run_key_queries: bool = True
    # True if a user asks for an explanation: then stages run although the statement is left alone.
    is_explained: bool = False
    # True if shadow mode compares the statement beside its original, which does not wait.
    is_compared: bool = False
    # The remembered keys that may be used beside those that the settings allow.
    keys: KeyTerms = ASK_FIRST
    # True if the session is still in this state: answers that it gets later are not those of the state.
    is_session_unchanged: Callable[[], bool] = always

    @property
    def waits_for_splits(self) -> bool:
        """True if the splits are asked for before the statement is sent, and not beside it."""
        return self.is_explained or self.is_compared

    @property
    def grace_s(self) -> float:
        """Seconds for which expired facts and settings are used, and asked for again while the statement runs."""
        may_be_due = self.keys.may_be_checked and self.state is not None and self.settings.consistency == "window"
        return self.settings.keys_remembered_s if may_be_due else 0.0

    def usable_keys(self, *, only_reads: bool) -> UsableKeys | None:
        """The remembered keys that a statement may use. One that writes cannot be taken back once it is sent."""
        if self.state is None:
            return None
        settings, since = self.settings, self.keys.asked_since
        is_checked = self.keys.may_be_checked and only_reads and settings.consistency == "window"
        return UsableKeys(
            self.state,
            self.asker,
            settings.key_staleness_s,
            asked_since=inf if since is None else since,
            checked_s=settings.keys_remembered_s if is_checked else 0.0,
        )


@dataclass(frozen=True)
class UncheckedKeys:
    """The remembered keys that a decision rests on, and the work that checks them."""

    keys: Mapping[KeyQuery, Keys]
    work: Work[CheckVerdict] = field(repr=False)
    # When the decision began, by the clock of the sessions.
    began_at: float


@dataclass(frozen=True)
class Decision:
    """The decision about a statement. `plan` and `rewrite` are None where it was not even parsed."""

    original: str
    skip: SkipReason | None = None
    plan: Plan | None = None
    rewrite: Rewrite | None = None
    # The tables that the rewrite was read from; None where there is none.
    read_set: ReadSet | None = None
    # The partitions of facts that have reducers, where they could be listed. Only explain asks for all of them.
    partitions: Mapping[TableName, PartitionIndex] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)
    # The key and the facts that the cost gate learns about, and its report.
    key: StatementKey | None = None
    facts: tuple[Fact, ...] = ()
    gate_report: GateReport | None = None
    # The snapshots that the rewritten statement names, of tables that keys were read from.
    snapshots: Mapping[TableName, SnapshotRead] = field(default_factory=dict)
    # The reasons why no snapshot is named of other Iceberg tables that keys were read from; for explain.
    unpinned: Mapping[TableName, UnpinnedReason] = field(default_factory=dict)
    # Numbers of files of Iceberg facts. Only explain asks.
    file_counts: Mapping[TableName, FileCounts] = field(default_factory=dict)
    # The bytes of Delta facts by their names and predicates, in all and kept. Only explain asks.
    delta_bytes: Mapping[tuple[TableName, str], tuple[int, int]] = field(default_factory=dict)
    # The ages of remembered keys, in seconds; for explain.
    key_ages: Mapping[KeyQuery, float] = field(default_factory=dict)
    # Failures of key queries, in words; for explain.
    key_errors: Mapping[KeyQuery, str] = field(default_factory=dict)
    # The limits that it would meet; for explain.
    limits: tuple[Finding, ...] = ()
    # Its quarantined parts; for explain.
    quarantined: tuple[QuarantineEntry, ...] = ()
    # The place where it does not parse; for explain.
    parse_failure: str | None = None
    # Its remembered keys that are still to be checked; None where there are none.
    unchecked: UncheckedKeys | None = None
    # Queries to ask while it runs. By their answers, later statements are read in fewer splits.
    beside: Work[None] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The statement to send."""
        return self.rewrite.text if self.rewrite is not None and self.skip is None else self.original

    @property
    def cause(self) -> str | None:
        """The place where it does not parse, or the tables whose writing is the reason; None for other reasons."""
        if self.skip is not SkipReason.SMALL_SIDE_WRITTEN or self.plan is None or self.read_set is None:
            return self.parse_failure
        read = frozenset[TableName]().union(*(question.tables for question in self.plan.key_queries))
        written = self.read_set.fence.written(read | self.read_set.pinned)
        return f"written: {listed(sorted(map(str, written)))}" if written else None

    @property
    def is_narrowed(self) -> bool:
        """True if anything is inserted."""
        return self.text != self.original

    @property
    def only_reads(self) -> bool:
        """True if the statement is known to write nothing."""
        return self.plan is not None and self.plan.statement.only_reads

    @property
    def check_failure(self) -> str:
        """The message with which a MERGE fails, before it commits, if it meets a key not asked for; else empty."""
        return self.rewrite.check_failure if self.rewrite is not None and self.is_narrowed else ""

    @property
    def is_left_by_gate(self) -> bool:
        """True if the cost gate left it alone, and there was no other reason before."""
        return self.gate_report is not None and self.gate_report.leaves and self.skip is self.gate_report.skip

    @property
    def cost_report(self) -> str | None:
        """The cost gate's report on a statement that is rewritten, or would be, or that it left alone."""
        report, scans = self.gate_report, self.rewrite.scans if self.rewrite is not None else ()
        would_be = any(scan.skip is SkipReason.KEYS_NOT_ASKED for scan in scans)
        is_told = report is not None and (report.leaves or self.is_narrowed or would_be)
        return report.sentence if report is not None and is_told else None

    @property
    def _was_spared(self) -> bool:
        """True if it was left alone before any key query."""
        is_written = self.skip is SkipReason.SMALL_SIDE_WRITTEN and self.timings.key_queries_s == 0.0
        return is_written or self.is_left_by_gate

    @property
    def _scan_reason(self) -> SkipReason | None:
        """The reason of the first scan, a dimension's or a CTE's only where there is no other."""
        skips = [scan.skip for scan in self.rewrite.scans if scan.skip is not None] if self.rewrite else []
        return next((skip for skip in skips if skip not in NO_FACTS), skips[0] if skips else None)

    def run(self, listings: SessionListings) -> Run | None:
        """The run that the cost gate learns from once the statement has ended; None without a lesson."""
        # The gate left it alone, and it may have fewer splits all the same.
        is_left = self.gate_report is not None and self.gate_report.leaves
        is_left = is_left and (self.rewrite is not None or self.is_left_by_gate)
        if self.key is None or self.plan is None or is_left:
            # The gate left it alone, whatever the number of its splits; or it has no plan, such as in quarantine.
            return Run(self.key, Way.ORIGINAL, listings, facts=self.facts) if self.key is not None else None
        is_narrowed = self.is_narrowed and self.rewrite is not None and self.rewrite.is_narrowed
        has_splits_alone = self.is_narrowed and not is_narrowed and not self.plan.key_queries
        if has_splits_alone or has_own_filters_alone(self.plan):
            # Without keys, there is no time of asking to judge.
            return None
        if self.skip is SkipReason.DESCRIPTION_LATE:
            # A late description says nothing of the statement, and its facts are not known.
            return None
        asked_s = self.timings.catalog_s + self.timings.key_queries_s
        if not is_narrowed and (asked_s == 0.0 or self._was_spared):
            # No keys were asked for: its facts are too small, or a small side is being written.
            return Run(self.key, Way.ORIGINAL, listings, facts=self.facts) if self.facts else None
        way = Way.REWRITTEN if is_narrowed else Way.ASKED_ONLY
        # Files that are fetched once for all statements are no cost of this one.
        overhead_s = self.timings.total_s - self.timings.files_s
        reason = None if is_narrowed else self._scan_reason
        return Run(self.key, way, listings, overhead_s, self.facts, reason, writes=not self.only_reads)
