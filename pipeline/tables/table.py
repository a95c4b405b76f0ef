"""The catalog's entry of a table that a command works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.spark.java import jvm_session, list_of_scala, map_of_scala
from pipeline.tables.reserved_paths import EXCHANGES
from rewriter.vocabulary.identifiers import quoted

# Formats that Spark itself reads and writes, and that hold every value exactly.
NATIVE_FORMATS = ("parquet", "orc")
# An option of tables, and a setting of Hadoop's. Source: OrcConf.FORCE_POSITIONAL_EVOLUTION in ORC.
ORC_BY_POSITION = "orc.force.positional.evolution"
# The only catalog whose tables are plain directories; Iceberg and Delta keep their own lists of files.
SESSION_CATALOG = "spark_catalog"
PARTS_WITH_CATALOG = 3


@dataclass(frozen=True, slots=True)
class Table:
    """A Spark-native table of files. Column names are spelled as the table spells them."""

    names: tuple[str, ...]  # catalog, database, table
    provider: str
    location: str  # a URI
    # Name to type, as DESCRIBE writes it but in lower case; in the table's order, partition columns last.
    columns: dict[str, str]
    partition_columns: tuple[str, ...]
    # True if the catalog lists its partitions; older tables find them by listing directories.
    tracks_partitions: bool
    options: dict[str, str]
    # TBLPROPERTIES.
    properties: dict[str, str]
    # True if it is in Hive's format: Spark has no `_metadata` for it.
    is_hive: bool = False

    @property
    def sql_name(self) -> str:
        """The full name for SQL, quoted, which no temporary view can hide."""
        return ".".join(map(quoted, self.names))

    @property
    def file_options(self) -> dict[str, str]:
        """Options for readers and writers of its files, such as the compression; without its path."""
        left_out = {"path", "serialization.format"}
        return {name: value for name, value in self.options.items() if name.lower() not in left_out}

    @property
    def is_read_by_position(self) -> bool:
        """True if the table says that ORC columns are found by their place in a file, and not by their names."""
        told = {name.lower(): value.lower() for name, value in {**self.properties, **self.options}.items()}
        return told.get(ORC_BY_POSITION, "false") != "false"

    @property
    def index_name(self) -> str:
        """The name under which the file index knows the table."""
        return ".".join(self.names).lower()


def find_table(
    spark: SparkSession, name: str, *, takes_buckets: bool = False, takes_hive: bool = False
) -> Table | None:
    """The table of that name, or None; raises PipelineError for one that the command cannot work on.

    The provider of a table in Hive's format is the format of its files.
    """
    catalog = jvm_session(spark).sessionState().catalog()
    wanted = identifier(spark, *_name_parts(spark, name))
    if not catalog.tableExists(wanted):
        return None
    described = catalog.getTableMetadata(wanted)
    names = _names(described.identifier())
    hive_format = _hive_format(described) if takes_hive else ""
    _check_kind(described, ".".join(names), takes_buckets=takes_buckets, hive_format=hive_format)
    partition_columns = tuple(_listed(spark, described.partitionColumnNames()))
    return Table(
        names,
        hive_format or described.provider().get().lower(),
        # A table without partitions has a temporary location while it is compacted; locks and journals stay in its
        # own directory.
        str(described.location().toString()).partition(f"/{EXCHANGES}/")[0],
        _columns(spark, names, int(described.schema().length())),
        partition_columns,
        bool(described.tracksPartitionsInCatalog()),
        _mapped(spark, described.storage().properties()),
        _mapped(spark, described.properties()),
        is_hive=bool(hive_format),
    )


def identifier(spark: SparkSession, *parts: str) -> Any:
    """The identifier of a table in Spark's session catalog, given as database and table, or table alone."""
    session = jvm_session(spark).sessionState()
    return session.catalog().qualifyIdentifier(
        session.sqlParser().parseTableIdentifier(".".join(map(quoted, parts)))
    )


def _name_parts(spark: SparkSession, name: str) -> list[str]:
    try:
        parts = _listed(spark, jvm_session(spark).sessionState().sqlParser().parseMultipartIdentifier(name))
    except ParseException as error:
        raise PipelineError(f"{name!r} is not the name of a table, such as sales or db.sales") from error
    if len(parts) == PARTS_WITH_CATALOG and parts[0].lower() == SESSION_CATALOG:
        return parts[1:]
    if len(parts) >= PARTS_WITH_CATALOG:
        raise PipelineError(f"{name}: only tables of Spark's own catalog, {SESSION_CATALOG}, are files of ours")
    return parts


def _names(found: Any) -> tuple[str, ...]:
    return str(found.catalog().get()), str(found.database().get()), str(found.table())


def _hive_format(described: Any) -> str:
    """The format of a table of Hive's that Spark's own reader can read, as Spark tells it; empty for any other."""
    is_hive = described.provider().isDefined() and str(described.provider().get()).lower() == "hive"
    if not is_hive or not described.storage().serde().isDefined():
        return ""
    serde = str(described.storage().serde().get()).lower()
    return next((name for name in NATIVE_FORMATS if name in serde), "")


def _check_kind(described: Any, name: str, *, takes_buckets: bool, hive_format: str) -> None:
    if described.tableType().name() == "VIEW":
        raise PipelineError(f"{name} is a view; name the table that it reads")
    if hive_format:
        return
    provider = str(described.provider().get()).lower() if described.provider().isDefined() else "hive"
    if provider == "hive":
        raise PipelineError(
            f"{name} is a Hive-format table (STORED AS ..), on which Spark can skip no files by name. "
            f"Make it a Spark-native one: CREATE TABLE .. USING parquet PARTITIONED BY (..) AS SELECT * "
            f"FROM {name}"
        )
    if provider == "delta":
        raise PipelineError(
            f"{name} is a table of Delta's, which keeps its own list of files and their bounds: it is loaded and "
            f"indexed by Delta alone, and compacted in a Spark session that has Delta's extension and catalog"
        )
    if provider not in NATIVE_FORMATS:
        raise PipelineError(f"{name} is a table of format {provider}; expected one of {', '.join(NATIVE_FORMATS)}")
    if described.bucketSpec().isDefined() and not takes_buckets:
        raise PipelineError(
            f"{name} is bucketed (CLUSTERED BY): Spark takes the bucket from the file's name, and files laid "
            f"out by skewed values would be read as wrong buckets. Load a table without buckets"
        )


def _columns(spark: SparkSession, names: tuple[str, ...], count: int) -> dict[str, str]:
    # The text of DESCRIBE alone tells varchar(n) from string; the columns come before its other sections.
    rows = spark.sql(f"DESCRIBE TABLE {'.'.join(map(quoted, names))}").take(count)
    return {row.col_name: row.data_type.lower() for row in rows}


def _listed(spark: SparkSession, sequence: Any) -> list[str]:
    return [str(item) for item in list_of_scala(spark, sequence)]


def _mapped(spark: SparkSession, mapping: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in map_of_scala(spark, mapping).items()}
