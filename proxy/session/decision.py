"""What is decided about a statement: whether it is narrowed, by which keys, and why not. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.consistency.read_set import ReadSet
from proxy.session.feedback.cost_gate import Fact, GateReport, Run, StatementKey, Way
from proxy.session.feedback.cost_inputs import has_own_filters_alone
from proxy.session.feedback.quarantine_list import QuarantineEntry
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.key_queries import RememberedKeys
from proxy.session.layout.iceberg_file_counts import FileCounts
from proxy.session.session_settings import SessionSettings
from proxy.session.timings import Timings
from rewriter import KeyQuery, Plan, Rewrite, SkipReason, TableName, UnpinnedReason
from rewriter.partitions.index import PartitionIndex


@dataclass(frozen=True)
class DecisionTerms:
    """On which terms a statement is decided about."""

    settings: SessionSettings
    # Whose statements share what the cost gate and the quarantine learn.
    scope: str
    # The state of the session, for what sessions of one state know in common; None where it is like no other's.
    state: bytes | None = None
    # Whether names may mean others than those that are described (`SessionState.has_search_path`).
    has_search_path: bool = False
    # Whether it may have variables (`SessionState.has_variables`).
    has_variables: bool = False
    run_key_queries: bool = True
    # Whether the user asks what would be done: then what is left alone is looked into all the same.
    is_explained: bool = False

    @property
    def memory(self) -> RememberedKeys | None:
        """The remembered keys that may be used."""
        return None if self.state is None else RememberedKeys(self.state, self.settings.key_staleness_s)


@dataclass(frozen=True)
class Decision:
    """What was decided about a statement. `plan` and `rewrite` are None where it was not even parsed."""

    original: str
    skip: SkipReason | None = None
    plan: Plan | None = None
    rewrite: Rewrite | None = None
    # The tables that the rewrite was read from; None where there is none.
    read_set: ReadSet | None = None
    # The partitions of facts that have reducers, where they could be listed. Only explain asks for all of them.
    partitions: Mapping[TableName, PartitionIndex] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)
    # What the cost gate learns from, and what it said.
    subject: StatementKey | None = None
    facts: tuple[Fact, ...] = ()
    opinion: GateReport | None = None
    # The snapshots that are named in the statement once it is narrowed, of tables that keys were read from.
    reads: Mapping[TableName, SnapshotRead] = field(default_factory=dict)
    # Why no snapshot is named of others, in Iceberg too, that keys were read from; for explain.
    unpinned: Mapping[TableName, UnpinnedReason] = field(default_factory=dict)
    # What the files of Iceberg facts are. Only explain asks.
    counts: Mapping[TableName, FileCounts] = field(default_factory=dict)
    # How old the keys were, in seconds, that had not to be asked for; for explain.
    key_ages: Mapping[KeyQuery, float] = field(default_factory=dict)
    # What of it was put aside because it did harm; for explain.
    quarantined: tuple[QuarantineEntry, ...] = ()

    @property
    def text(self) -> str:
        """The statement to send."""
        return self.rewrite.text if self.rewrite is not None and self.skip is None else self.original

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is inserted."""
        return self.text != self.original

    @property
    def only_reads(self) -> bool:
        """Whether the statement is known to write nothing."""
        return self.plan is not None and self.plan.statement.only_reads

    @property
    def _was_spared(self) -> bool:
        """Whether it was left alone before it was asked for keys."""
        is_written = self.skip is SkipReason.SMALL_SIDE_WRITTEN and self.timings.key_queries_s == 0.0
        return is_written or self.skip is SkipReason.NOT_WORTH_IT

    def run(self, listings: SessionListings) -> Run | None:
        """What the cost gate learns from the statement's end in its session; None where there is nothing."""
        if self.subject is None or self.plan is None:
            # It was left alone: by the gate itself, or for a while.
            return Run(self.subject, Way.DIRECT, listings) if self.subject is not None else None
        if has_own_filters_alone(self.plan):
            return None
        if self.skip is SkipReason.DESCRIPTION_LATE:
            # It says nothing of the statement, and its facts are not known.
            return None
        asked_s = self.timings.catalog_s + self.timings.key_queries_s
        if not self.is_narrowed and (asked_s == 0.0 or self._was_spared):
            # No keys were asked for: its facts are too small, or a small side is being written.
            return Run(self.subject, Way.DIRECT, listings, facts=self.facts) if self.facts else None
        way = Way.NARROWED if self.is_narrowed else Way.IN_VAIN
        # Facts that are fetched once for all statements are no price of this one.
        return Run(self.subject, way, listings, self.timings.total_s - self.timings.files_s, self.facts)
