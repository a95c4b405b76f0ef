"""What the metastore behind Spark digests: as configured, and less once it has failed."""

from __future__ import annotations

import logging

from rewriter.consumers import METASTORES, halved

_log = logging.getLogger(__name__)

# How Spark names it when the metastore refused the partition filter of a statement (HiveShim.scala).
FILTER_REFUSED = "INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER"


class Metastore:
    """The limits that all sessions of the process share. They only come down: until a restart, if need be."""

    def __init__(self, database: str) -> None:
        self.consumer = METASTORES[database]

    def refused(self) -> None:
        """It refused a filter that we have a part in: what we send from now on is half as long."""
        before, self.consumer = self.consumer, halved(self.consumer)
        if self.consumer != before:
            _log.warning(
                "the metastore refused a partition filter; from now on it is sent %d points or %d ranges at most,"
                " instead of %d and %d (rewrite.metastore says which database is behind it)",
                *(self.consumer.points_max, self.consumer.ranges_max),
                *(before.points_max, before.ranges_max),
            )
