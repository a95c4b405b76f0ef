"""What the sessions of a process have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from proxy.config import Config
from proxy.metastore import Metastore
from proxy.partition_lists import SharedLists
from proxy.store import PartitionStore

# Sections that are read as the proxy starts. [rewrite] counts from the next statement of every session on,
# [catalog] from the next session on, but for where the store is.
_AT_START = ("proxy", "admin", "log")


@dataclass
class Shared:
    """The configuration, which may be read anew while sessions go on, and what they learn for one another."""

    config: Config
    clock: Callable[[], float]
    lists: SharedLists
    metastore: Metastore

    @classmethod
    def of(
        cls, config: Config, clock: Callable[[], float] = time.monotonic, store: PartitionStore | None = None
    ) -> Shared:
        """As the configuration has it, with a store of partition lists or without."""
        return cls(config, clock, SharedLists(store), Metastore(config.rewrite.metastore))

    def reload(self, config: Config) -> tuple[str, ...]:
        """Go on with another configuration. Returns the sections that differ and count only after a restart."""
        before, self.config = self.config, config
        if config.rewrite.metastore != before.rewrite.metastore:
            self.metastore = Metastore(config.rewrite.metastore)
        return tuple(name for name in _AT_START if getattr(config, name) != getattr(before, name))
