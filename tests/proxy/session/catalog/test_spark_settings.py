import pytest
from support.played_sessions import rows

from proxy.session.catalog.spark_settings import ServerSettings, read_settings
from rewriter import SkipReason

ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELTA = "io.delta.sql.DeltaSparkSessionExtension"
RANGER = "org.apache.kyuubi.plugin.spark.authz.ranger.RangerSparkExtension"


@pytest.mark.parametrize(
    ("extensions", "is_unknown"),
    [("", False), (ICEBERG, False), (f"{DELTA}, {ICEBERG}", False), (RANGER, True), (f"{ICEBERG},{RANGER}", True)],
)
def test_an_extension_that_is_not_known_may_show_other_rows(extensions: str, is_unknown: bool) -> None:  # noqa: FBT001
    settings = read_settings(rows(("spark.sql.extensions", extensions)))
    has_delta = DELTA in extensions or is_unknown
    assert settings == ServerSettings(None, has_unknown_extensions=is_unknown, has_delta=has_delta)


@pytest.mark.parametrize(
    ("name", "value", "has_delta"),
    [
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog", True),
        ("spark.sql.catalog.lake", "org.example.DeltaCatalog ", True),
        ("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog", False),
        ("spark.example.catalog", "org.example.DeltaCatalog", False),
    ],
)
def test_a_catalog_tells_of_delta(name: str, value: str, *, has_delta: bool) -> None:
    assert read_settings(rows((name, value))).has_delta is has_delta


@pytest.mark.parametrize(
    ("said", "unconverted"),
    [
        ({}, set()),
        ({"spark.sql.hive.convertMetastoreParquet": "TRUE", "spark.sql.hive.convertMetastoreOrc": "true"}, set()),
        ({"spark.sql.hive.convertMetastoreParquet": "false"}, {"parquet"}),
        (
            {"spark.sql.hive.convertMetastoreOrc": " False ", "spark.sql.hive.convertMetastoreParquet": "x"},
            {"parquet", "orc"},
        ),
    ],
)
def test_formats_of_hive_are_read_by_spark_where_no_setting_forbids_it(
    said: dict[str, str], unconverted: set[str]
) -> None:
    assert read_settings(rows(*said.items())).unconverted_formats == unconverted


def test_other_settings_that_decide_what_names_mean_are_read_as_before() -> None:
    assert read_settings(rows()) == ServerSettings()
    shared = rows(("spark.sql.hive.thriftServer.singleSession", "true"))
    assert read_settings(shared).uncertainty is SkipReason.SHARED_SESSION


@pytest.mark.parametrize("name", ["orc.force.positional.evolution", "spark.hadoop.orc.force.positional.evolution"])
def test_a_session_that_reads_orc_by_position_is_known(name: str) -> None:
    assert read_settings(rows((name, "true"))).reads_by_position
    assert not read_settings(rows((name, "false"))).reads_by_position
    assert not read_settings(rows()).reads_by_position
