"""Tables in Hive's format as DESCRIBE shows them, and those of them that Spark reads by its own reader."""

import pytest
from support.played_sessions import rows

from proxy.session.catalog.describe import read_description

HIVE = "org.apache.hadoop.hive"


@pytest.mark.parametrize(
    ("provider", "serde", "expected"),
    [
        ("hive", f"{HIVE}.ql.io.parquet.serde.ParquetHiveSerDe", "parquet"),
        ("hive", f"{HIVE}.ql.io.orc.OrcSerde", "orc"),
        ("hive", f"{HIVE}.serde2.lazy.LazySimpleSerDe", ""),
        ("hive", f"{HIVE}.serde2.avro.AvroSerDe", ""),
        ("hive", "", ""),
        ("parquet", f"{HIVE}.ql.io.parquet.serde.ParquetHiveSerDe", ""),
    ],
)
def test_the_serde_tells_which_reader_spark_takes(provider: str, serde: str, expected: str) -> None:
    said = [
        ("x", "int"),
        ("# Detailed Table Information", ""),
        ("Database", "d"),
        ("Table", "t"),
        ("Type", "MANAGED"),
    ]
    facts = read_description(rows(*said, ("Provider", provider), *([("Serde Library", serde)] if serde else [])))
    assert facts is not None
    assert facts.converted_format == expected
