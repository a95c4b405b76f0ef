"""The golden cases about Iceberg tables, with what DESCRIBE says of these beside their columns."""

from dataclasses import replace

from rewriter import (
    Catalog,
    Column,
    IcebergFacts,
    Plan,
    RewriteLimits,
    TableFacts,
    TableKind,
    TableName,
)
from rewriter.domains.literals import is_data_key_type
from support.golden_cases import Take, catalog
from support.goldens import planned_with

KIND = "iceberg"
LIMITS = RewriteLimits()
CHARS_MAX = 100_000
NAMESPACE = ("ice", "golden")
SMALL_SIDES = frozenset({"small", "moments"})

PARTITIONING = {
    "hashed": ("bucket(16, k)",),
    "monthly": ("months(day)",),
    "crossed": ("a", "b"),
    "evolved": ("truncate(10, k)",),
}
# As the statistics say it, but that they change with each version of a writer.
_SMALL_BYTES, _FACT_BYTES = 1_000, 1_000_000


def facts() -> dict[str, TableFacts]:
    """What is known of the tables."""
    known = {name: with_iceberg(name, described) for name, described in catalog(KIND).items()}
    columns = (Column("file_size_in_bytes", "bigint"), Column("spec_id", "int"))
    files = replace(known["sorted"], columns=columns, indexed_columns=("spec_id",))
    return {**known, "files": replace(files, full_name=TableName((*NAMESPACE, "sorted", "files")))}


def with_iceberg(name: str, described: TableFacts) -> TableFacts:
    """The table with its transforms and with all columns that can have keys; a view as it is."""
    if described.kind is TableKind.VIEW:
        return described
    return replace(
        described,
        full_name=TableName((*NAMESPACE, name)),
        size_bytes=_SMALL_BYTES if name in SMALL_SIDES else _FACT_BYTES,
        indexed_columns=tuple(column.name for column in described.columns if is_data_key_type(column.type_name)),
        iceberg=IcebergFacts(1, PARTITIONING.get(name, ())),
    )


def pure_catalog(names: frozenset[TableName]) -> Catalog:
    """The catalog of the given names: None for one that is no table."""
    known = facts()
    return {name: known.get(name.parts[-1].lower()) for name in names}


def planned(sql: str, limits: RewriteLimits = LIMITS) -> Plan:
    """The plan of a statement over the tables."""
    return planned_with(sql, pure_catalog, limits)


def rule_of(case: Take) -> str:
    """The rule that a case belongs to, as it is switched off."""
    return case.rule.removeprefix(f"{KIND}/")
