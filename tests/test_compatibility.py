"""The table of features by version of Spark is made from what pytest reported of runs, and of nothing else."""

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from iceberg_server import made_for
from support.maven import ClientMissingError

from tools import compatibility
from tools.compatibility import FEATURES, Result, feature_of, merged, page, results

ROOT = Path(__file__).parent.parent
NOW = f"Before.\n\n{compatibility.BEGIN}\n\nold\n\n{compatibility.END}\n\nAfter.\n"
REWRITE, ICEBERG, DATES = (
    "tests.e2e.test_rewrite",
    "tests.iceberg.test_named_snapshots",
    "tests.e2e.test_dates_on_spark",
)
JOINS, DAYS = feature_of(REWRITE), feature_of(DATES)

PASSED = ""
FAILURE = '<failure message="assert 1 == 2">..</failure>'
ERROR = '<error message="failed on setup">..</error>'
SKIPPED = '<skipped type="pytest.skip" message="there is no mvn on PATH">..</skipped>'
NO_RUNTIME = (
    '<skipped type="pytest.skip" message="there is no Iceberg here for spark-core_2.13-4.3.0">..</skipped>'
)


def reported(folder: Path, *cases: tuple[str, str], at: str = "2026-12-01T12:00:00+00:00") -> Path:
    """A report of pytest with a test for each module and end."""
    tests = "".join(
        f'<testcase classname="{module}" name="test_{number}" time="1.0">{end}</testcase>'
        for number, (module, end) in enumerate(cases)
    )
    return written(folder, tests, at)


def written(folder: Path, tests: str, at: str = "2026-12-01T12:00:00+00:00") -> Path:
    report = folder / "report.xml"
    suite = f'<testsuite name="pytest" timestamp="{at}">{tests}</testsuite>'
    report.write_text(f'<?xml version="1.0" encoding="utf-8"?><testsuites>{suite}</testsuites>', encoding="utf-8")
    return report


def cell(folder: Path, *ends: str) -> str:
    """The words for a feature whose tests ended like that."""
    (one,) = results(reported(folder, *((ICEBERG, end) for end in ends)), "4.3.0", "abc")
    return one.words


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([PASSED, PASSED], "works (2)"),
        ([PASSED, FAILURE, PASSED], "2 of 3"),
        ([PASSED, ERROR], "1 of 2"),
        ([FAILURE], "0 of 1"),
        ([SKIPPED, SKIPPED], "not run"),
        ([NO_RUNTIME, SKIPPED], "not on this version"),
        ([PASSED, SKIPPED], "works (1); 1 skipped"),
        ([PASSED, FAILURE, SKIPPED, NO_RUNTIME, NO_RUNTIME], "1 of 2; 2 not on this version; 1 skipped"),
    ],
)
def test_a_cell_says_how_many_tests_passed_and_why_others_did_not_run(
    ends: list[str], words: str, tmp_path: Path
) -> None:
    assert cell(tmp_path, *ends) == words


def test_a_test_that_stands_in_the_report_twice_counts_once_and_as_failed(tmp_path: Path) -> None:
    twice = "".join(
        f'<testcase classname="{REWRITE}" name="test_it">{end}</testcase>' for end in (FAILURE, PASSED)
    )
    (one,) = results(written(tmp_path, twice), "4.3.0", "abc")
    assert (one.passed, one.failed) == (0, 1)


def test_a_module_that_could_not_be_imported_has_failed(tmp_path: Path) -> None:
    (one,) = results(
        written(tmp_path, f'<testcase classname="" name="{DATES}">{ERROR}</testcase>'), "4.3.0", "abc"
    )
    assert one == Result(DAYS, "4.3.0", "2026-12-01", "abc", failed=1)


def test_modules_and_classes_of_one_feature_are_counted_together(tmp_path: Path) -> None:
    found = results(
        reported(
            tmp_path,
            ("tests.pipeline.swap.test_exchange", PASSED),
            ("tests.pipeline.compaction.test_compaction.TestOfAClass", FAILURE),
            (REWRITE, PASSED),
        ),
        "3.5.6",
        "abc",
    )
    assert {one.feature: one.words for one in found} == {"pipeline: compact": "1 of 2", JOINS: "works (1)"}


def test_the_day_is_that_on_which_the_run_began_in_utc(tmp_path: Path) -> None:
    (one,) = results(reported(tmp_path, (REWRITE, PASSED), at="2026-12-01T01:30:00+02:00"), "3.5.6", "abc")
    assert one.day == "2026-11-30"


@pytest.mark.parametrize("module", ["tests.e2e.test_rewrite_more", "tests.e2e", "tests.clientsides.test_new"])
def test_a_module_of_no_feature_is_named(module: str, tmp_path: Path) -> None:
    with pytest.raises(
        click.ClickException, match=f"{re.escape(module)} belongs to no feature: name it in FEATURES"
    ):
        results(reported(tmp_path, (REWRITE, PASSED), (module, PASSED)), "3.5.6", "abc")


def test_every_module_that_make_runs_on_servers_has_a_feature_and_every_feature_a_module() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^SERVER_TESTS := ((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    places = [ROOT / place for place in re.findall(r"tests/[\w/.]+", listed)]
    places += [ROOT / "tests" / "pipeline", ROOT / "tests" / "layouts"]
    modules = [path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules]
    assert {feature_of(name) for name in names} == set(FEATURES)


def test_the_reason_for_which_the_tests_skip_a_spark_without_a_runtime_is_known(tmp_path: Path) -> None:
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core_2.13-9.9.9.jar").touch()
    for what in ("Iceberg", "Delta"):
        with pytest.raises(ClientMissingError) as told:
            made_for(tmp_path, {"4.1": ""}, what)
        assert cell(tmp_path, f'<skipped message="{told.value}"/>') == "not on this version"


def test_a_run_replaces_the_features_that_it_has_on_its_server_alone() -> None:
    old_joins, old_days = (Result(name, "3.5.5", "2026-11-01", "old", passed=1) for name in (JOINS, DAYS))
    other = Result(JOINS, "4.1.4", "2026-11-01", "old", passed=1)
    new = Result(JOINS, "3.5.6", "2026-12-01", "new", failed=2)
    assert merged([other, old_days, old_joins], [new]) == [new, old_days, other]


def test_the_page_has_a_column_for_each_server_and_an_item_for_each_run() -> None:
    known = [
        Result(JOINS, "4.1.4", "2026-12-01", "new", passed=6),
        Result(DAYS, "4.1.4", "2026-11-01", "old", passed=3, failed=1),
        Result(JOINS, "4.10.0", "2026-12-01", "new", failed=1),
    ]
    made = page(NOW, known)
    assert (made.startswith("Before.\n"), "old\n" in made, made.endswith("\nAfter.\n")) == (True, False, True)
    table = [line.strip("| ").split(" | ") for line in made.splitlines() if line.startswith("|")]
    cells = {row[0]: dict(zip(table[0][1:], row[1:], strict=True)) for row in table[2:]}
    assert list(cells) == list(FEATURES)
    assert list(cells[JOINS])[-3:] == ["4.1", "4.3", "4.10"]
    assert (cells[JOINS]["4.1"], cells[DAYS]["4.1"], cells[JOINS]["4.3"]) == ("works (6)", "3 of 4", "not run")
    assert [line for line in made.splitlines() if line.startswith("* ")] == [
        f"* Spark 4.1.4, 2026-11-01, commit old: {DAYS}",
        f"* Spark 4.1.4, 2026-12-01, commit new: {JOINS}",
        f"* Spark 4.10.0, 2026-12-01, commit new: {JOINS}",
    ]
    assert page(made, known) == made


def test_the_command_records_a_run_and_makes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, made = tmp_path / "record.json", tmp_path / "page.md"
    record.write_text("[]", encoding="utf-8")
    made.write_text(NOW, encoding="utf-8")
    monkeypatch.setattr(compatibility, "RECORD", record)
    monkeypatch.setattr(compatibility, "PAGE", made)
    spark = tmp_path / "spark"
    told = spark / "pyspark-3.5.6.dist-info" / "METADATA"
    told.parent.mkdir(parents=True)
    told.write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.6\n", encoding="utf-8")
    run = [str(reported(tmp_path, (REWRITE, PASSED), (DATES, FAILURE))), "--commit", "abc", "--spark"]

    done = CliRunner().invoke(compatibility.main, [*run, str(spark)])
    assert done.exit_code == 0, done.output
    (joins, days) = json.loads(record.read_text(encoding="utf-8"))
    assert (joins["feature"], joins["spark"], joins["commit"], joins["passed"]) == (JOINS, "3.5.6", "abc", 1)
    assert (days["feature"], days["failed"]) == (DAYS, 1)
    assert made.read_text(encoding="utf-8") == page(NOW, compatibility.recorded())

    refused = CliRunner().invoke(compatibility.main, [*run, str(tmp_path / "nowhere")])
    assert (refused.exit_code, "there is no PySpark in the folder" in refused.output) == (2, True)
