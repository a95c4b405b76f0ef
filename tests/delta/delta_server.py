"""Spark Thrift Server with Delta, which Maven brings, on the Spark that Delta is made for."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from iceberg_server import made_for, spark_for_formats
from pipeline_server import PipelineServer, pipeline_server
from support.maven import fetch

_KERNEL = ("api", "defaults", "unitycatalog")
# Delta by the Spark that it is made for, with what it needs.
_ARTIFACTS = {
    "3.5": ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
    "4.0": ("io.delta:delta-spark_2.13:4.0.1", "io.delta:delta-storage:4.0.1"),
    "4.1": (
        "io.delta:delta-spark_4.1_2.13:4.2.0",
        "io.delta:delta-storage:4.2.0",
        *(f"io.delta:delta-kernel-{part}:4.2.0" for part in _KERNEL),
        "io.unitycatalog:unitycatalog-client:0.4.1",
    ),
}
_CACHE = Path(__file__).parents[2] / ".starpruner" / "delta"


def delta_artifacts() -> tuple[str, ...]:
    """Delta for the Spark of the formats, and what it needs; raises ClientMissingError."""
    return made_for(spark_for_formats(), _ARTIFACTS, "Delta")


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
        pyspark=spark_for_formats(),
    ) as server:
        yield server
