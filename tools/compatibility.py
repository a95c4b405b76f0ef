"""The tables in docs/compatibility.md, made from the record of runs: `python -m tools.compatibility`.

After a run of tests on a Spark, `make test-servers` has the report of pytest put into that record:

    python -m tools.compatibility --spark .starpruner/spark-3.5 --commit 1234abcd REPORT.xml

Results of features without a test in the report stay as they are, and so do those of other versions.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, parse

import click

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "compatibility.md"
RECORD: Final = ROOT / "docs" / "compatibility.json"
COMMAND: Final = "python -m tools.compatibility"
BEGIN: Final = f"<!-- versions: made by {COMMAND} -->"
END: Final = "<!-- end of versions -->"

# Features by the modules and folders of their tests, in the order of the page.
FEATURES: Final = {
    "star joins read fewer partitions": ("tests.e2e.test_rewrite",),
    "`starpruner explain`": ("tests.e2e.test_explain",),
    "a narrowed statement that fails runs as it came": ("tests.e2e.test_reruns_on_spark",),
    "sessions with functions of their own and with typos": ("tests.e2e.test_bent_sessions_and_typos",),
    "dates as keys": ("tests.e2e.test_dates_on_spark",),
    "statements of twelve BI tools and of warehouses": ("tests.reach",),
    "golden statements": ("tests.rewriter.test_goldens_on_other_servers",),
    "partitioned small sides": ("tests.e2e.test_partitioned_small_sides",),
    "remembered keys": ("tests.faults.test_remembered_keys",),
    "small files in fewer tasks": ("tests.e2e.test_small_files",),
    "queries in memory": ("tests.e2e.test_queries_in_memory",),
    "settings of a session": ("tests.e2e.test_session_settings",),
    "calls of ODBC drivers, of Hue and of PyHive": ("tests.clients",),
    "functions in key queries": ("tests.rewriter.sql.test_deterministic_functions_on_spark",),
    "Iceberg tables": ("tests.iceberg",),
    "Delta tables": ("tests.delta",),
    "file index and layouts": ("tests.layouts",),
    "pipeline: load": ("tests.pipeline.load",),
    "pipeline: index": ("tests.pipeline.index",),
    "pipeline: compact": ("tests.pipeline.compaction", "tests.pipeline.swap"),
    "pipeline: tables and partitions": ("tests.pipeline.tables", "tests.pipeline.spark"),
    "pipeline: jobs on a cluster": ("tests.pipeline.test_standalone_cluster",),
}
# The end of a test, the one first that counts where a test has several: it failed, and then its cleaning up did.
_ENDS: Final = ("failed", "no_runtime", "skipped", "passed")
# Why a test is skipped on a Spark that its table format has no runtime for (`made_for` of the tests with Iceberg).
_NO_RUNTIME: Final = re.compile(r"there is no (?:Iceberg|Delta) here for spark-core")


@dataclass(frozen=True)
class Result:
    """How the tests of a feature ended on a version of Spark."""

    feature: str
    # The whole version, as in 3.5.6.
    spark: str
    # The day in UTC on which the run began, and the commit that was tested.
    day: str
    commit: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    no_runtime: int = 0

    @property
    def server(self) -> str:
        """The version as `make test-servers` names it, as in 3.5."""
        return ".".join(self.spark.split(".")[:2])

    @property
    def words(self) -> str:
        """The cell of the table."""
        if not self.passed and not self.failed:
            return "not on this version" if self.no_runtime else "not run"
        word = f"{self.passed} of {self.passed + self.failed}" if self.failed else f"works ({self.passed})"
        notes = ((self.no_runtime, "not on this version"), (self.skipped, "skipped"))
        return "; ".join([word, *(f"{count} {note}" for count, note in notes if count)])


def results(report: Path, spark: str, commit: str) -> list[Result]:
    """The results in a report of pytest, by feature; raises ClickException for a test of no feature."""
    (suite,) = parse(report).getroot().iter("testsuite")  # noqa: S314 - pytest has written it, for us
    day = f"{datetime.fromisoformat(suite.attrib['timestamp']).astimezone(UTC):%F}"
    ends: dict[tuple[str, str], str] = {}
    for case in suite.iter("testcase"):
        # A module that could not be imported has no class name.
        test = case.attrib["classname"] or case.attrib["name"], case.attrib["name"]
        ends[test] = min(_end_of(case), ends.get(test, _ENDS[-1]), key=_ENDS.index)
    counts: dict[str, Counter[str]] = {}
    for (module, _), end in ends.items():
        counts.setdefault(feature_of(module), Counter())[end] += 1
    return [Result(feature, spark, day, commit, **count) for feature, count in counts.items()]


def _end_of(case: Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "no_runtime" if _NO_RUNTIME.search(skipped.attrib["message"]) else "skipped"


def feature_of(module: str) -> str:
    """The feature that a module of tests is about, as in `tests.e2e.test_rewrite`; raises ClickException."""
    for feature, places in FEATURES.items():
        if any(f"{module}.".startswith(f"{place}.") for place in places):
            return feature
    raise click.ClickException(f"{module} belongs to no feature: name it in FEATURES of tools/compatibility.py")


def merged(before: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """All results, new ones in the place of those of the same feature and server, in the order of the page."""
    found = {(one.server, one.feature): one for one in (*before, *new)}
    order = list(FEATURES)
    return sorted(found.values(), key=lambda one: (_number(one.server), order.index(one.feature)))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def recorded() -> list[Result]:
    """The results in docs/compatibility.json."""
    return [Result(**one) for one in json.loads(RECORD.read_text(encoding="utf-8"))]


def page(now: str, known: Sequence[Result]) -> str:
    """The page with these results, and a column for each server of `make test-servers`."""
    before, _, rest = now.partition(BEGIN)
    _, _, after = rest.partition(END)
    (servers,) = re.findall(r"^SERVERS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    columns = sorted({*servers.split(), *(one.server for one in known)}, key=_number)
    cells = {(one.server, one.feature): one.words for one in known}
    rows = [[feature, *(cells.get((column, feature), "not run") for column in columns)] for feature in FEATURES]
    table = [f"| {' | '.join(row)} |" for row in (["feature", *columns], ["---"] * (len(columns) + 1), *rows)]
    return "\n".join([f"{before}{BEGIN}\n", *table, "", *_runs(known), f"\n{END}{after}"])


def _runs(known: Sequence[Result]) -> Iterator[str]:
    def run_of(one: Result) -> tuple[tuple[int, ...], str, str]:
        return _number(one.spark), one.day, one.commit

    for (_, day, commit), found in groupby(sorted(known, key=run_of), run_of):
        features = list(found)
        text = f"Spark {features[0].spark}, {day}, commit {commit}: {'; '.join(one.feature for one in features)}"
        yield textwrap.fill(text, 115, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False)


@click.command()
@click.argument("report", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--spark", default="", help="the folder with the PySpark of the run")
@click.option("--commit", default="", help="the commit that was tested")
def main(report: Path | None, spark: str, commit: str) -> None:
    """Make the page anew, with the run of a report if there is one."""
    if report is not None:
        version = next((one.version for one in metadata.distributions(name="pyspark", path=[spark])), None)
        if version is None:
            raise click.UsageError(f"there is no PySpark in the folder `{spark}`: name it with --spark")
        known = merged(recorded(), results(report, version, commit or "unknown"))
        lines = ",\n".join(f" {json.dumps(asdict(one))}" for one in known)
        RECORD.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), recorded()), encoding="utf-8")
    click.echo(PAGE.name)


if __name__ == "__main__":
    main()
