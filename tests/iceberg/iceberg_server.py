"""Spark Thrift Server with Iceberg: the newest Spark that Iceberg has a runtime for, or the one that is tested.

The environment has a newer Spark, on which no runtime loads. `make` puts the others beside it, and Maven brings
the runtimes.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pipeline_server import PipelineServer, pipeline_server
from support.maven import ClientMissingError, fetch
from support.stamps import spark_version

from demo.java import SPARK_HOME

T = TypeVar("T")

_FOLDER = Path(__file__).parents[2] / ".starpruner"
SPARK = _FOLDER / "spark-4.1"
CACHE = _FOLDER / "iceberg"

# The runtime by the minor version of Spark that it is made for.
_RUNTIMES = {
    "3.5": "iceberg-spark-runtime-3.5_2.12:1.12.0",
    "4.0": "iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "iceberg-spark-runtime-4.1_2.13:1.12.0",
}

# A catalog of Iceberg's own, and the session's catalog, in which Iceberg tables stand beside other ones.
CATALOG = "ice"


def iceberg_runtime() -> str:
    """Iceberg's runtime for the Spark that is tested, as name and version; raises ClientMissingError."""
    return made_for(spark_for_formats(), _RUNTIMES, "Iceberg")


def runtime_jar(cache: Path = CACHE) -> Path:
    """The runtime as a file, fetched by Maven on first use; raises ClientMissingError."""
    name, version = iceberg_runtime().split(":")
    jar = cache / f"{name}-{version}.jar"
    if not jar.exists():
        fetch(f"org.apache.iceberg:{name}:{version}", cache)
    return jar


def spark_for_formats(folder: Path = SPARK) -> Path:
    """The folder to import PySpark from, for Iceberg and Delta; raises ClientMissingError."""
    if chosen := os.environ.get(SPARK_HOME):
        return Path(chosen).parent
    if not (folder / "pyspark").is_dir():
        raise ClientMissingError(f"there is no Spark for Iceberg in {folder}; `make iceberg` brings it")
    return folder


def made_for(folder: Path, parts: Mapping[str, T], what: str) -> T:
    """The part that is made for the Spark in a folder, by its minor version; raises ClientMissingError."""
    version = spark_version(folder / "pyspark")
    found = next((part for minor, part in parts.items() if f"-{minor}." in version), None)
    if found is None:
        raise ClientMissingError(f"there is no {what} here for {version}")
    return found


@contextmanager
def iceberg_server(
    directory: Path,
    *,
    cores: int = 2,
    memory: str = "1g",
    java_options: str = "",
    conf: Mapping[str, str] | None = None,
) -> Iterator[PipelineServer]:
    """Runs a server with Iceberg as long as the context lasts; raises ClientMissingError."""
    with pipeline_server(
        directory,
        cores=cores,
        memory=memory,
        java_options=java_options,
        conf={**_settings(directory.resolve(), runtime_jar()), **(conf or {})},
        pyspark=spark_for_formats(),
    ) as server:
        yield server


def _settings(directory: Path, jar: Path) -> dict[str, str]:
    catalogs = {
        CATALOG: ("SparkCatalog", directory / "ice"),
        "spark_catalog": ("SparkSessionCatalog", directory / "warehouse"),
    }
    settings = {
        # As one of `spark.jars` the runtime would be gone for all sessions once the first one has closed.
        "spark.driver.extraClassPath": str(jar),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    for name, (kind, warehouse) in catalogs.items():
        prefix = f"spark.sql.catalog.{name}"
        settings |= {
            prefix: f"org.apache.iceberg.spark.{kind}",
            f"{prefix}.type": "hadoop",
            f"{prefix}.warehouse": str(warehouse),
        }
    # Each session has catalogs of its own and loads the session's before anything can be set: it would see what
    # other sessions commit half a minute late. A test of the other catalog can choose.
    settings["spark.sql.catalog.spark_catalog.cache-enabled"] = "false"
    return settings
