"""Random tables as Iceberg's: each at a snapshot, and narrowed by any column, for all of them have bounds."""

from dataclasses import dataclass, replace

from star_tables import Star, Table

from rewriter import IcebergFacts, TableFacts
from rewriter.domains.literals import is_data_key_type

SNAPSHOT = 8548337367546804323


@dataclass(frozen=True)
class SnapshotTable(Table):
    """A table of Iceberg's. Its partitions are not told of: files have bounds of those columns too."""

    @property
    def facts(self) -> TableFacts:
        """What the proxy would learn of the table."""
        return replace(
            super().facts,
            provider="iceberg",
            partition_columns=(),
            indexed_columns=tuple(c.name for c in self.columns if is_data_key_type(c.type_name)),
            iceberg=IcebergFacts(SNAPSHOT),
            size_bytes=1_000 if self.is_fact else 1,
        )


def of_iceberg(star: Star, *others: str) -> Star:
    """The star with all tables of Iceberg's but those others."""
    return Star(
        tuple(
            t if t.name in others else SnapshotTable(t.name, t.columns, t.rows, t.partition_columns)
            for t in star.tables
        )
    )
