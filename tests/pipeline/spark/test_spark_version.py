import pytest

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import check_version


def test_a_spark_that_is_too_old_is_refused() -> None:
    for version in ("3.5.0", "3.5.9-cdp", "4.0.0-preview1", "10.1.0"):
        check_version(version)
    with pytest.raises(PipelineError, match=r"^this is Spark 3\.4\.4, and the commands need 3\.5 or later"):
        check_version("3.4.4")
