"""Spark Thrift Server with Delta, which Maven brings, on the Spark that Delta is made for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iceberg_server import spark_for_iceberg
from pipeline_server import PipelineServer, pipeline_server
from support import cheap_spark
from support.cheap_spark import QUICK_JAVA
from support.maven import fetch

# They fit Spark 4.1, and one another.
DELTA = "io.delta:delta-spark_4.1_2.13:4.2.0"
_KERNEL = ("api", "defaults", "unitycatalog")
_ARTIFACTS = (
    DELTA,
    "io.delta:delta-storage:4.2.0",
    *(f"io.delta:delta-kernel-{part}:4.2.0" for part in _KERNEL),
    "io.unitycatalog:unitycatalog-client:0.4.1",
)
_CACHE = Path(__file__).parents[2] / ".starpruner" / "delta"


def delta_jars(cache: Path = _CACHE) -> list[Path]:
    """Delta and what it needs, fetched by Maven on first use; raises ClientMissingError."""
    found = []
    for artifact in _ARTIFACTS:
        _, name, version = artifact.split(":")
        jar = cache / f"{name}-{version}.jar"
        if not jar.exists():
            fetch(artifact, cache)
        found.append(jar)
    return found


@contextmanager
def delta_server(directory: Path) -> Iterator[PipelineServer]:
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
        java_options=QUICK_JAVA,
        conf={**cheap_spark.interpreted(), **settings},
        pyspark=spark_for_iceberg(),
    ) as server:
        yield server
