import pytest
from pyspark.sql import SparkSession

from pipeline.spark.local_rows import local_frame

TEXTS = ("", " a ", "line\nend\r\u2028", 'quote"\\', "żółw ✓ \U0001f427", "null", "{}", "'", "\t", None)


def test_rows_are_as_they_were(local_spark: SparkSession) -> None:
    rows = [
        {
            "text": text,
            "number": (1 << 62) + number,
            "places": {f"k{number}": {"low": text, "nulls": number}},
            "lists": [[text], []],
        }
        for number, text in enumerate(TEXTS)
    ]
    places = "MAP<STRING, STRUCT<low: STRING, nulls: BIGINT>>"
    schema = f"text STRING, number BIGINT, places {places}, lists ARRAY<ARRAY<STRING>>"
    found = local_frame(local_spark, rows, schema).collect()
    assert [row.asDict(recursive=True) for row in found] == rows
    assert local_frame(local_spark, [], schema).collect() == []


def test_no_executor_is_asked_for_them(local_spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    local_frame(local_spark, [{"text": "a"}], "text STRING").explain()
    plan = capsys.readouterr().out.split()
    assert "LocalTableScan" in plan
    assert "Scan" not in plan
