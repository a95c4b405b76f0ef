import pytest

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import check_version


def test_a_spark_that_is_too_old_is_refused() -> None:
    check_version("4.0.0-preview1")
    check_version("10.1.0")
    with pytest.raises(PipelineError, match=r"^this is Spark 3\.5\.9, and the commands need 4 or later"):
        check_version("3.5.9")
