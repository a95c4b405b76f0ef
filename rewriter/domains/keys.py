"""Results of key queries, of whatever kind."""

from __future__ import annotations

from typing import TypeAlias

from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.partition_matches import PartitionMatches

# Keys, ranges around them, or the partitions that can match.
Keys: TypeAlias = KeySet | KeyRanges | PartitionMatches
