"""Spark's own metrics, by answers of its REST API as the tests script them."""

from typing import Any

import pytest

from demo import metrics
from demo.metrics import SparkUi

URL = "http://ui"


@pytest.mark.parametrize(
    ("statuses", "is_running"),
    [([], False), (["COMPLETED", "FAILED"], False), (["RUNNING", "COMPLETED"], True)],
)
def test_an_execution_runs_until_spark_says_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, statuses: list[str], *, is_running: bool
) -> None:
    def get(url: str) -> list[dict[str, Any]]:
        asks_for_executions = "/applications/local-1/sql?" in url
        return [{"status": status} for status in statuses] if asks_for_executions else [{"id": "local-1"}]

    monkeypatch.setattr(metrics, "_get", get)
    assert SparkUi(URL).has_running_execution() is is_running
