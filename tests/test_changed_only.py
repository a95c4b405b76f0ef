"""A heavy test runs again where anything has changed that it depends on, and is left out where nothing has."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import pytest
from support import hbase_server, passed
from support.heavy import is_heavy, starts_something
from support.passed import DeepRecord, Passed, Stamps, StampsBeside
from support.source_tree import DEEP_RECORD, ROOT, SourceTree

from tools.tests_of import touched_by

# Asks for the proxy in its fixtures.
GOLDENS = ("tests/rewriter/test_golden_on_spark.py", "demo/proxy_process.py", "demo/thrift_server.py")
PIPELINE = ("tests/pipeline/load/test_load.py",)

CHANGED: Mapping[str, str] = {
    "the rewriter": "rewriter/semijoins/days_query.py",
    "the proxy, which a command starts": "proxy/frontend/own_session.py",
    "a template of the proxy": "proxy/admin/templates/base.html",
    "the tables": "tests/rewriter/golden/tables.sql",
    "the settings": "tests/support/cheap_spark.py",
    "the expected texts": "tests/rewriter/golden/joins.toml",
    "the module itself": GOLDENS[0],
    "how servers start": "demo/thrift_server.py",
    "what the project needs": "pyproject.toml",
}
OTHERS: Mapping[str, str] = {
    "a page": "docs/serving.md",
    "another test": "tests/e2e/test_rewrite.py",
    "the pipeline": "pipeline/load/__init__.py",
    "a stamp": "tests/rewriter/test_golden_on_spark.passed",
    "a stamp of cases": "tests/rewriter/golden/verified/plain.json",
    "the record of deep runs": DEEP_RECORD,
}


@cache
def tree() -> SourceTree:
    found = SourceTree.read()
    if found is None:
        pytest.skip("git tells no files of this folder")
    return found


def changed(path: str) -> SourceTree:
    return replace(tree(), digests={**tree().digests, path: "another text"})


@pytest.mark.parametrize("what", CHANGED)
def test_a_changed_input_makes_a_module_due(what: str) -> None:
    assert CHANGED[what] in tree().digests
    assert changed(CHANGED[what]).digest_of(GOLDENS) != tree().digest_of(GOLDENS)


@pytest.mark.parametrize("what", OTHERS)
def test_what_a_module_does_not_use_leaves_it_as_it_is(what: str) -> None:
    assert changed(OTHERS[what]).digest_of(GOLDENS) == tree().digest_of(GOLDENS)


def test_a_test_that_follows_pages_is_due_for_a_page_and_not_for_a_record_of_runs() -> None:
    pages = ("docs/clusters.md", DEEP_RECORD, "docs/compatibility.json", "docs/compatibility.md")
    assert set(pages) <= set(tree().digests)
    follower = ("tests/pipeline/test_standalone_cluster.py",)
    due = [path for path in pages if changed(path).digest_of(follower) != tree().digest_of(follower)]
    assert due == ["docs/clusters.md"]


def test_another_version_of_spark_makes_every_module_due() -> None:
    assert "pyspark" in tree().versions
    other = replace(tree(), versions=tree().versions.replace("pyspark", "another pyspark"))
    assert all(other.digest_of(one) != tree().digest_of(one) for one in (GOLDENS, PIPELINE))


def test_a_file_in_a_folder_that_nobody_knows_makes_every_module_due() -> None:
    assert all(
        changed("new_folder/settings.ini").digest_of(one) != tree().digest_of(one) for one in (GOLDENS, PIPELINE)
    )


def test_a_new_file_is_an_input_where_its_folder_is() -> None:
    assert changed("tests/rewriter/golden/new.sql").digest_of(GOLDENS) != tree().digest_of(GOLDENS)


def test_the_pipeline_is_not_tested_anew_for_a_changed_proxy() -> None:
    assert changed("proxy/frontend/own_session.py").digest_of(PIPELINE) == tree().digest_of(PIPELINE)
    assert changed("pipeline/load/__init__.py").digest_of(PIPELINE) != tree().digest_of(PIPELINE)


def test_what_an_image_is_built_of_is_an_input_of_its_tests() -> None:
    images = ["tests/containers/test_proxy_image.py", "tests/support/container_engine.py"]
    found = tree().inputs_of(images)
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    folders = [line.removeprefix("!") for line in let_in if line.startswith("!") and (ROOT / line[1:]).is_dir()]
    assert len(folders) > 3
    assert all(any(path.startswith(f"{folder}/") for path in found) for folder in folders)


def test_a_module_that_a_text_of_python_imports_is_an_input() -> None:
    texts = {
        "pyproject.toml": (ROOT / "pyproject.toml").read_bytes(),
        "tests/test_x.py": b'subprocess.run([python, "-c", "from proxy.cli import main; main()"])',
        "proxy/cli.py": b"import proxy.server",
        "proxy/server.py": b"",
        "proxy/other.py": b"",
    }
    assert SourceTree.of(texts).inputs_of(["tests/test_x.py"]) == texts.keys() - {"proxy/other.py"}


# --- tests that have passed


class FakeItem:
    """A test, as far as stamps see it."""

    def __init__(self, name: str, mark: str | None = None) -> None:
        self.nodeid = f"tests/test_x.py::{name}"
        self.user_properties: list[tuple[str, object]] = []
        self._mark = mark

    def get_closest_marker(self, name: str) -> bool:
        return name == self._mark


class FakeConfig:
    """The configuration of a run with these arguments."""

    def __init__(self, *arguments: str) -> None:
        self.args = [one for one in arguments if one != passed.OPTION]
        self.hook = self
        self._is_selecting = passed.OPTION in arguments

    def getoption(self, name: str, *, default: bool = False) -> bool:
        return self._is_selecting if name == "changed_only" else default

    def pytest_deselected(self, items: list[FakeItem]) -> None:
        assert items


def report(of: FakeItem, when: str = "call", outcome: str = "passed", reason: str = "") -> pytest.TestReport:
    longrepr = ("tests/test_x.py", 1, f"Skipped: {reason}") if reason else None
    found = pytest.TestReport(of.nodeid, ("", 0, ""), {}, outcome, longrepr, when)  # type: ignore[arg-type]
    found.user_properties = list(of.user_properties)
    return found


class Run:
    """One run over a module with a heavy test, a costly one and another."""

    def __init__(self, stamps: Stamps, texts: Mapping[str, bytes], *arguments: str) -> None:
        config = FakeConfig(*arguments)
        self._plugin = Passed(config, SourceTree.of(texts), stamps)  # type: ignore[arg-type]
        self.stamped = [FakeItem("one", "heavy"), FakeItem("two", "costly")]
        self.selected = [*self.stamped, FakeItem("three")]
        self._plugin.select(config, self.selected)  # type: ignore[arg-type]

    def ends(self, *outcomes: Mapping[str, str]) -> None:
        for test, outcome in zip(self.stamped, outcomes, strict=False):
            self._plugin.pytest_runtest_logreport(report(test, "setup"))
            self._plugin.pytest_runtest_logreport(report(test, **outcome))
            self._plugin.pytest_runtest_logreport(report(test, "teardown"))

    @property
    def names(self) -> list[str]:
        return [one.nodeid.partition("::")[2] for one in self.selected]


SMALL = {
    "pyproject.toml": (ROOT / "pyproject.toml").read_bytes(),
    "tests/test_x.py": b"import y",
    "tests/y.py": b"",
}
PASSES: Mapping[str, str] = {}
ALL, SOME = ["one", "two", "three"], ["three"]


@pytest.fixture(params=[StampsBeside, DeepRecord])
def stamps(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stamps:
    for folder in ("tests", "docs"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(passed, "ROOT", tmp_path)
    made: Stamps = request.param()
    return made


def names_of_next_run(stamps: Stamps) -> list[str]:
    return Run(stamps, SMALL, passed.OPTION).names


def test_another_spark_has_stamps_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(passed, "ROOT", tmp_path)

    def stamps_of(version: str) -> Stamps:
        jars = tmp_path / version / "jars"
        jars.mkdir(parents=True)
        (jars / f"spark-core_2.12-{version}.jar").touch()
        return StampsBeside(str(jars.parent))

    older, later, own = stamps_of("3.5.8"), stamps_of("3.5.9"), StampsBeside()
    Run(older, SMALL).ends(PASSES, PASSES)
    assert [names_of_next_run(one) for one in (older, later, own)] == [SOME, ALL, ALL]
    Run(own, SMALL).ends(PASSES, PASSES)
    Run(later, SMALL).ends(PASSES, PASSES)
    assert [names_of_next_run(one) for one in (older, later, own)] == [ALL, SOME, SOME]


def test_what_passed_is_left_out_and_other_tests_of_its_module_are_not(stamps: Stamps) -> None:
    assert names_of_next_run(stamps) == ALL
    Run(stamps, SMALL, passed.OPTION).ends(PASSES, PASSES)
    assert names_of_next_run(stamps) == SOME
    assert Run(stamps, {**SMALL, "tests/y.py": b"z = 1"}, passed.OPTION).names == ALL
    assert Run(stamps, SMALL).names == ALL, "it is asked for without the option"


@pytest.mark.parametrize(
    "second",
    [{"outcome": "failed"}, {"outcome": "skipped", "reason": "there is no chromium"}, None],
    ids=["failed", "lacked something", "did not run"],
)
def test_a_module_that_did_not_pass_as_a_whole_has_no_stamp(
    stamps: Stamps, second: Mapping[str, str] | None
) -> None:
    Run(stamps, SMALL).ends(PASSES, *(() if second is None else (second,)))
    assert names_of_next_run(stamps) == ALL


def test_a_test_for_deep_runs_alone_may_be_skipped(stamps: Stamps) -> None:
    Run(stamps, SMALL).ends(PASSES, {"outcome": "skipped", "reason": "minutes: STARPRUNER_DEEP=1"})
    assert names_of_next_run(stamps) == SOME


def test_a_deep_run_is_recorded_by_module_with_its_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(passed, "ROOT", tmp_path)
    for path in ("tests/b.py", "tests/a.py", "tests/b.py"):
        DeepRecord().keep(path, f"digest of {path}", 2.6)
    entries = json.loads((tmp_path / DEEP_RECORD).read_text(encoding="utf-8"))
    assert list(entries) == ["tests/a.py", "tests/b.py"]
    assert entries["tests/b.py"]["seconds"] == 3
    assert date.fromisoformat(entries["tests/b.py"]["on"]) <= datetime.now(UTC).date()
    assert DeepRecord().known("tests/a.py") == ("digest of tests/a.py",)


def test_tests_that_are_named_one_by_one_are_no_whole_module(stamps: Stamps) -> None:
    Run(stamps, SMALL, "tests/test_x.py::one").ends(PASSES, PASSES)
    assert names_of_next_run(stamps) == ALL


# --- heavy tests


def test_a_function_is_heavy_that_calls_one_that_starts_java() -> None:
    # Called by its name, it would make this test a heavy one.
    starts = vars(hbase_server)["hbase"]
    assert starts_something(inspect.unwrap(starts))
    assert not starts_something(touched_by)


def test_a_test_is_heavy_by_what_its_fixtures_start(request: pytest.FixtureRequest) -> None:
    assert not is_heavy(request.node)


# --- tests of a change


def test_a_change_has_the_tests_that_import_it_by_helpers_of_tests_alone() -> None:
    named_by = {
        "proxy/net/tls.py": {"proxy/server.py", "tests/support/stage.py", "tests/proxy/net/test_tls.py"},
        "proxy/server.py": {"tests/proxy/test_server.py"},
        "tests/support/stage.py": {"tests/proxy/http/test_http.py"},
    }
    assert touched_by(["proxy/net/tls.py"], named_by) == {"tests/proxy/net", "tests/proxy/http/test_http.py"}
    assert touched_by(["tests/support/stage.py"], named_by) == {"tests/proxy/http/test_http.py"}


def test_a_change_of_a_rule_has_its_mutations_and_generated_statements() -> None:
    found = touched_by(["rewriter/semijoins/days_query.py"], {})
    assert {"tests/rewriter/semijoins", "tests/rewriter/test_golden.py"} < found
    assert {name.partition("::")[0] for name in found if "::" in name} == {
        "tests/differential/test_mutations.py",
        "tests/differential/test_sieve.py",
    }
