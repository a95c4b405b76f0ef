"""The server's own settings and functions, which decide what a name means, and what a user sees of a table.

The session's statements do not show them: `proxy.session.consistency.session_state` sees only what these set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import NO_TABLES, Query, QueryResult, Rows
from proxy.statements.statement_class import is_evolution_setting
from rewriter import SkipReason

# Source: Spark's StaticSQLConf. With it, SET and USE of one client count for all.
_SHARED_SESSION: Final = "spark.sql.hive.thriftServer.singleSession"
# Source: Spark's SQLConf, from 4.2 on.
_SEARCH_PATH: Final = "spark.sql.defaultPath"
# From 4.3 on: `first` lets a function of a session's own hide one of Spark's, also those that we insert.
_FUNCTION_ORDER: Final = "spark.sql.functionResolution.sessionOrder"
_OWN_FUNCTIONS_FIRST: Final = "first"

# Classes that change how Spark plans (StaticSQLConf). Apache Kyuubi's for Apache Ranger adds row filters and masks
# of the user to the tables that a statement names, and perhaps others to a view.
_EXTENSIONS: Final = "spark.sql.extensions"
_DELTA: Final = "io.delta.sql.DeltaSparkSessionExtension"
# Extensions that add no row filters or masks.
_KNOWN_EXTENSIONS: Final = frozenset({"org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions", _DELTA})
_CATALOGS: Final = "spark.sql.catalog."
_DELTA_CATALOG: Final = "DeltaCatalog"

# Source: Spark's HiveUtils. They decide whether Spark reads Hive's tables of a format by its own reader; both are
# true where nothing is set.
_CONVERSIONS: Final = {
    "spark.sql.hive.convertMetastoreParquet": "parquet",
    "spark.sql.hive.convertMetastoreOrc": "orc",
}

# An option of tables, and a setting of Hadoop's. Source: OrcConf.FORCE_POSITIONAL_EVOLUTION in ORC.
ORC_BY_POSITION: Final = "orc.force.positional.evolution"
_BY_POSITION: Final = (ORC_BY_POSITION, f"spark.hadoop.{ORC_BY_POSITION}")

# Servers have some dozens of settings.
_ROWS_MAX: Final = 10_000
_BYTES_MAX: Final = 4 * 1024 * 1024


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server that count for the decisions of its sessions."""

    # The reason why a name may mean another table than the described one.
    uncertainty: SkipReason | None = None
    # True if an extension may show a user other rows of a table than a view over it does.
    has_unknown_extensions: bool = False
    # True if the server may apply Delta's rules: Delta's extension or catalog does, and an unknown extension may.
    has_delta: bool = False
    # The formats whose tables of Hive's are read by Hive's reader.
    unconverted_formats: frozenset[str] = frozenset()
    # True if columns of ORC files are found by their place in a file: then bounds by name may be those of other
    # columns.
    reads_by_position: bool = False
    # True if a write may add columns to its table without saying so.
    evolves_schemas: bool = False


def settings_query(settings: CatalogSection) -> Query:
    """The statement whose answer `read_settings` reads: all settings that were set. The rest has its default."""
    return Query(
        "SET", rows_max=_ROWS_MAX, bytes_max=_BYTES_MAX, deadline_s=settings.query_deadline_s, reads=NO_TABLES
    )


def functions_query(settings: CatalogSection) -> Query:
    """The statement whose answer `read_functions` reads: Spark's own functions, some hundreds."""
    deadline_s = settings.query_deadline_s
    return Query("SHOW SYSTEM FUNCTIONS", _ROWS_MAX, _BYTES_MAX, deadline_s, reads=NO_TABLES)


def read_functions(answer: QueryResult) -> frozenset[str]:
    """The names of the functions that a server has of its own; none if it does not tell."""
    return frozenset(str(row[0]).lower() for row in answer.rows) if isinstance(answer, Rows) else frozenset()


def read_settings(answer: QueryResult) -> ServerSettings:
    """The settings in an answer to SET."""
    if not isinstance(answer, Rows):
        return ServerSettings(SkipReason.SETTINGS_UNKNOWN)
    values = {str(row[0]): str(row[1]) for row in answer.rows}
    extensions = {name.strip() for name in values.get(_EXTENSIONS, "").split(",") if name.strip()}
    has_unknown = not extensions <= _KNOWN_EXTENSIONS
    unconverted = (
        format_name
        for setting, format_name in _CONVERSIONS.items()
        if values.get(setting, "true").strip().lower() != "true"
    )
    return ServerSettings(
        _uncertainty(values),
        has_unknown_extensions=has_unknown,
        has_delta=has_unknown or _DELTA in extensions or any(map(_is_delta_catalog, values.items())),
        unconverted_formats=frozenset(unconverted),
        evolves_schemas=any(
            value.strip().lower() != "false" for name, value in values.items() if is_evolution_setting(name)
        ),
        reads_by_position=any(values.get(name, "false").strip().lower() != "false" for name in _BY_POSITION),
    )


def _is_delta_catalog(setting: tuple[str, str]) -> bool:
    name, value = setting
    return name.startswith(_CATALOGS) and value.strip().endswith(_DELTA_CATALOG)


def _uncertainty(values: Mapping[str, str]) -> SkipReason | None:
    """The reason why a name may mean another table than the described one, if the settings give one."""
    if values.get(_SHARED_SESSION, "false").strip().lower() != "false":
        return SkipReason.SHARED_SESSION
    hides_functions = values.get(_FUNCTION_ORDER, "").strip().lower() == _OWN_FUNCTIONS_FIRST
    return SkipReason.SEARCH_PATH if values.get(_SEARCH_PATH) or hides_functions else None
