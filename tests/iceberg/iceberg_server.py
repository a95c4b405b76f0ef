"""Spark Thrift Server with Iceberg: the newest Spark that Iceberg has a runtime for, in a folder of its own.

The environment has a newer Spark, on which that runtime does not load. `make` puts the older one beside it, and
Maven brings the runtime.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipeline_server import PipelineServer, pipeline_server
from support.maven import ClientMissingError, fetch

_FOLDER = Path(__file__).parents[2] / ".starpruner"
SPARK = _FOLDER / "spark-4.1"
CACHE = _FOLDER / "iceberg"

# The versions fit one another: a runtime is made for one minor version of Spark.
RUNTIME = "iceberg-spark-runtime-4.1_2.13"
VERSION = "1.12.0"

# A catalog of Iceberg's own, and the session's catalog, in which Iceberg tables stand beside other ones.
CATALOG = "ice"


def runtime_jar(cache: Path = CACHE) -> Path:
    """Iceberg's runtime for Spark, fetched by Maven on first use; raises ClientMissingError."""
    jar = cache / f"{RUNTIME}-{VERSION}.jar"
    if not jar.exists():
        fetch(f"org.apache.iceberg:{RUNTIME}:{VERSION}", cache)
    return jar


def spark_for_iceberg(folder: Path = SPARK) -> Path:
    """The folder to import PySpark from; raises ClientMissingError."""
    if not (folder / "pyspark").is_dir():
        raise ClientMissingError(f"there is no Spark for Iceberg in {folder}; `make iceberg` brings it")
    return folder


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
        pyspark=spark_for_iceberg(),
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
