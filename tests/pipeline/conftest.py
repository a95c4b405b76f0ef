"""What the tests of the pipeline share: one local Spark for the whole session."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from demo.java import find_java


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark in this process, on one core, with a catalog in memory: quick to start, and it leaves nothing."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    warehouse = tmp_path_factory.mktemp("warehouse")
    # The tables are tiny: compiling queries to Java, and Java well, takes far longer than running them.
    quick: dict[str, bool | float | int | str | None] = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config(map=quick)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
