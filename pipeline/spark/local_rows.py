"""Rows of this process as a Spark frame that the JVM makes, so that executors need no Python.

`createDataFrame` of a list starts Python on an executor, which has to have the driver's version of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.spark.java import jvm, jvm_session, list_of


def local_frame(spark: SparkSession, rows: Iterable[Mapping[str, object]], schema: str) -> DataFrame:
    """The rows, each by the names of the schema's columns, as JSON has them: a struct is a mapping too."""
    # The JSON is ASCII, so it holds no other line end than this one.
    lines = "\n".join(map(json.dumps, rows))
    java = jvm(spark)
    texts = list_of(spark, java.org.apache.commons.lang3.StringUtils.split(lines, "\n"))
    encoder = java.org.apache.spark.sql.Encoders.STRING()
    frame = DataFrame(jvm_session(spark).createDataset(texts, encoder).toDF(), spark)
    return frame.select(f.from_json("value", schema, {"mode": "FAILFAST"}).alias("row")).select("row.*")
