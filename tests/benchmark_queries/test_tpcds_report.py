"""The report of the TPC-DS benchmark, and how a second start goes on with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click import UsageError
from pairs import WARM, Pair, Runs
from reports import write_json
from tpcds_on_spark import Report, Settings, _begun
from verdicts import Measured, verdict

SETTINGS = Settings(1.0, 1, [WARM], 9, 4, 5, [])


def measured(query: str) -> Measured:
    pair = Pair(Runs([1.0, 2.0, 1.0]), Runs([2.0, 4.0, 2.0]), [1, 1, 1], [0, 1, 1, 1])
    return Measured(query, narrowed=[], pairs={WARM: pair}, verdicts={WARM: verdict(pair)})


def test_a_report_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    report = Report(SETTINGS).with_queries([measured("q1"), measured("q2")])
    write_json(tmp_path / "report.json", report)
    assert _begun(tmp_path / "report.json", SETTINGS) == report
    assert report.summaries[WARM].losses == ["q1", "q2"]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_query_that_failed_is_measured_again(tmp_path: Path) -> None:
    write_json(
        tmp_path / "report.json", Report(SETTINGS).with_queries([measured("q1"), Measured("q2", error="no")])
    )
    assert [one.query for one in _begun(tmp_path / "report.json", SETTINGS).queries] == ["q1"]


def test_a_report_of_other_settings_or_of_an_older_benchmark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_json(path, Report(replace(SETTINGS, runs=7)))
    with pytest.raises(UsageError, match="remove it or name another"):
        _ = _begun(path, SETTINGS)
    path.write_text(json.dumps({"settings": {"scale": 1.0}}), encoding="utf-8")
    with pytest.raises(UsageError, match="another version"):
        _ = _begun(path, SETTINGS)


def test_a_report_from_before_there_were_formats_is_one_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report = Report(SETTINGS).with_queries([measured("q1")])
    write_json(path, report)
    written = json.loads(path.read_text(encoding="utf-8"))
    del written["settings"]["table_format"]
    path.write_text(json.dumps(written), encoding="utf-8")
    assert _begun(path, SETTINGS) == report
    with pytest.raises(UsageError, match="remove it or name another"):
        _ = _begun(path, replace(SETTINGS, table_format="delta"))


def test_without_a_report_one_is_begun(tmp_path: Path) -> None:
    assert _begun(tmp_path / "none.json", SETTINGS) == _begun(None, SETTINGS) == Report(SETTINGS)
