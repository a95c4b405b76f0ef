"""Spark Thrift Server with Delta, which Maven brings, on the Spark that Delta is made for."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from iceberg_server import spark_for_iceberg
from pipeline_server import PipelineServer, pipeline_server
from support.maven import ClientMissingError, fetch
from support.stamps import spark_version

from demo.java import SPARK_HOME

_KERNEL = ("api", "defaults", "unitycatalog")
# Delta by the Spark that it is made for, with what it needs.
_ARTIFACTS = {
    "3.5": ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
    "4.1": (
        "io.delta:delta-spark_4.1_2.13:4.2.0",
        "io.delta:delta-storage:4.2.0",
        *(f"io.delta:delta-kernel-{part}:4.2.0" for part in _KERNEL),
        "io.unitycatalog:unitycatalog-client:0.4.1",
    ),
}
_CACHE = Path(__file__).parents[2] / ".starpruner" / "delta"


def spark_for_delta() -> Path:
    """The folder to import PySpark from: that of the server to test, or as for Iceberg; may raise as that does."""
    chosen = os.environ.get(SPARK_HOME)
    return Path(chosen).parent if chosen else spark_for_iceberg()


def delta_artifacts() -> tuple[str, ...]:
    """Delta for that Spark, and what it needs; raises ClientMissingError."""
    version = spark_version(spark_for_delta() / "pyspark")
    found = next((jars for spark, jars in _ARTIFACTS.items() if f"-{spark}." in version), None)
    if found is None:
        raise ClientMissingError(f"there is no Delta here for {version}")
    return found


def delta_jars(cache: Path = _CACHE) -> list[Path]:
    """Delta and what it needs, fetched by Maven on first use; raises ClientMissingError."""
    found = []
    for artifact in delta_artifacts():
        _, name, version = artifact.split(":")
        jar = cache / f"{name}-{version}.jar"
        if not jar.exists():
            fetch(artifact, cache)
        found.append(jar)
    return found


@contextmanager
def delta_server(
    directory: Path, *, memory: str = "1g", java_options: str = "", conf: Mapping[str, str] | None = None
) -> Iterator[PipelineServer]:
    """Runs a server with Delta as long as the context lasts; raises ClientMissingError."""
    settings = {
        # As one of `spark.jars` it would be gone for all sessions once the first one has closed.
        "spark.driver.extraClassPath": ":".join(map(str, delta_jars())),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # VACUUM keeps files for a week unless it is told otherwise.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    }
    with pipeline_server(
        directory,
        memory=memory,
        java_options=java_options,
        conf={**settings, **(conf or {})},
        pyspark=spark_for_delta(),
    ) as server:
        yield server
