"""State that all sessions of a process share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from proxy.config.config import Config
from proxy.config.memory_shares import AMPLE, MemoryShares
from proxy.config.reload import counting_after_restart
from proxy.limits.limits import Limit, limits_of
from proxy.off_switch import OffSwitch
from proxy.operations.session_port import KnownState
from proxy.session.analysis_room import BYTES_PER_CHARACTER, AnalysisRoom
from proxy.session.catalog.evolving_backends import EvolvingBackends
from proxy.session.catalog.metadata_cache import MetadataCache
from proxy.session.consistency.write_fence import LocalWriteLog, WriteLog
from proxy.session.feedback.cost_gate import CostGate, Gate
from proxy.session.feedback.known_texts import KnownTexts
from proxy.session.feedback.metastore_limits import MetastoreLimits
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.key_cache import KeyCache
from proxy.session.layout.file_lists import FileLists
from proxy.session.layout.iceberg_files import IcebergFiles
from proxy.session.layout.partition_lists import SharedLists
from proxy.session.layout.partition_store import PartitionStore
from proxy.session.metrics import Metrics
from proxy.session.plan_memory import PlanMemory
from proxy.session.shadow.differences import DifferenceLog


class OwnSessionStates(Protocol):
    """The sessions that the proxy has opened itself, as clients would, and that no client ever used.

    Any thread may ask.
    """

    def state_of(self, digest: bytes) -> KnownState | None:
        """The state of this digest, where there is such a session to ask in."""
        ...

    def renew(self, digest: bytes) -> None:
        """Stop using the sessions of that state that are open now: a table may have other columns."""
        ...


class NoOwnSessions:
    """No sessions: each client's session asks for itself, and shares its answers with no other."""

    def state_of(self, digest: bytes) -> KnownState | None:
        """See OwnSessionStates."""

    def renew(self, digest: bytes) -> None:
        """See OwnSessionStates."""


@dataclass
class SharedState:
    """The configuration, which may be read anew while sessions go on, and the caches that they share."""

    config: Config
    clock: Callable[[], float]
    lists: SharedLists
    files: FileLists
    iceberg_files: IcebergFiles
    metastore: MetastoreLimits
    gate: Gate
    quarantine: Quarantine
    keys: KeyCache
    metadata: MetadataCache
    differences: DifferenceLog
    analysis: AnalysisRoom
    plans: PlanMemory
    evolving: EvolvingBackends
    writes: WriteLog = field(default_factory=LocalWriteLog)
    own_sessions: OwnSessionStates = field(default_factory=NoOwnSessions)
    known_texts: KnownTexts = field(default_factory=KnownTexts)
    metrics: Metrics = field(default_factory=Metrics)
    off_switch: OffSwitch = field(default_factory=OffSwitch)
    # The limits of the configuration, in their order.
    limits: tuple[Limit, ...] = ()
    # Samples statements for shadow mode: a number from 0 to 1 for each.
    chance: Callable[[], float] = random.random

    @classmethod
    def of(
        cls,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        store: PartitionStore | None = None,
        writes: WriteLog | None = None,
        memory: MemoryShares = AMPLE,
    ) -> SharedState:
        """The state for a configuration, with a store of partition lists or without."""
        rewrite, shadow = config.rewrite, config.shadow
        writes = LocalWriteLog(clock) if writes is None else writes
        path = Path(shadow.differences_path) if shadow.differences_path else None
        shared = cls(
            config=config,
            clock=clock,
            lists=SharedLists(store),
            files=FileLists(config.files, clock),
            iceberg_files=IcebergFiles(config.files, clock),
            metastore=MetastoreLimits(rewrite.metastore, rewrite.quarantine_s, clock),
            gate=CostGate(clock, rewrite.gate_retry_s),
            quarantine=Quarantine(rewrite.quarantine_s, clock),
            keys=KeyCache(bytes_max=min(rewrite.key_cache_bytes_max, memory.key_bytes)),
            metadata=MetadataCache(config.catalog, clock, writes),
            evolving=EvolvingBackends(clock),
            differences=DifferenceLog(path, shadow.differences_bytes_max),
            analysis=AnalysisRoom(memory.analysis_bytes - memory.plan_bytes),
            plans=PlanMemory(memory.plan_bytes // BYTES_PER_CHARACTER),
            writes=writes,
            off_switch=OffSwitch(rewrite.off_file),
            limits=limits_of(config.limits, config.limiting),
        )
        shared.metrics.watch_metastore(lambda: shared.metastore)
        shared.metrics.watch_quarantine(shared.quarantine)
        return shared

    def reload(self, config: Config) -> tuple[str, ...]:
        """Go on with another configuration. Returns its changed keys that count only after a restart."""
        before, self.config = self.config, config
        rewrite = config.rewrite
        if rewrite.metastore != before.rewrite.metastore:
            self.metastore = MetastoreLimits(rewrite.metastore, rewrite.quarantine_s, self.clock)
        self.metastore.period_s = self.quarantine.period_s = rewrite.quarantine_s
        self.gate.retry_s = rewrite.gate_retry_s
        self.limits = limits_of(config.limits, config.limiting)
        if config.files != before.files:
            self.files = FileLists(config.files, self.clock)
            self.iceberg_files = IcebergFiles(config.files, self.clock)
        if (config.catalog, config.files) != (before.catalog, before.files):
            # Table facts hold the indexed columns.
            self.metadata = MetadataCache(config.catalog, self.clock, self.writes)
        return counting_after_restart(before, config)
