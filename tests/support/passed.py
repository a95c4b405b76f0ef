"""Stamps of modules: heavy and costly tests that passed run again where something has changed that they depend on.

Beside a module like tests/e2e/test_rewrite.py, tests/e2e/test_rewrite.passed has the digest of all that its heavy
tests depend on (`support.source_tree`) as they last passed, all of them. So has one whose tests are marked as
costly. `--changed-only`, which `make test` says, leaves out those of modules whose digest is still that one. Any
run writes the stamp of a module of which all such tests passed. A run on another Spark has stamps of its own
(tests/e2e/test_rewrite.spark-3.5.passed), and looks at them and writes them with `--changed-only` alone.

A deep run takes hours, so all its tests have stamps, heavy or not, in a record of its own: docs/test-all.json says
when and on which commit each module last passed in depth. `make test-all GO_ON=1` leaves out
modules whose digest is still that one.

A module without a stamp, a new file, or one that belongs to no known folder: the tests run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from support.heavy import files_used_by, functions_of
from support.profile import DEEP, OF_A_DEEP_RUN
from support.source_tree import DEEP_RECORD, ROOT, STAMP_SUFFIX, SourceTree, told_by_git
from support.stamps import UNCHANGED, spark_version

OPTION: Final = "--changed-only"
# Of a test with a stamp, for whoever sees its report: the digest, and the number of such tests in its module.
_PROPERTY: Final = "stamped_tests"
_CONFTEST: Final = "tests/conftest.py"
# Marks of tests with stamps.
_STAMPED: Final = ("heavy", "costly")
# Skipped for such a reason, a test would be skipped on every machine, with the same Spark.
_EVERYWHERE: Final = (OF_A_DEEP_RUN, UNCHANGED, "another Spark", "Spark has")
# Read once in a process: the tests of mutations run pytest in their own, many times.
_tree_of_checkout: Final = cache(SourceTree.read)


def stamp_of(path: str, spark: str = "") -> Path:
    """The path of the stamp of a module such as `tests/e2e/test_rewrite.py`, with another Spark such as 3.5."""
    return (ROOT / path).with_suffix(f".spark-{spark}{STAMP_SUFFIX}" if spark else STAMP_SUFFIX)


def digest_of(tree: SourceTree, path: str, items: Iterable[pytest.Item]) -> str:
    """The digest of all that these tests of a module depend on.

    Of conftest.py that is its own text, and what the fixtures use that the tests ask for.
    """
    modules = {path}
    for item in items:
        for stands_in, function in functions_of(item):
            modules |= files_used_by(function) if stands_in == _CONFTEST else {stands_in}
    return tree.digest_of(modules - {_CONFTEST}, beside=(_CONFTEST,))


class Stamps(Protocol):
    """Keeps the digests of modules that passed."""

    def known(self, path: str) -> Sequence[str]:
        """The digests with which a module has passed."""
        ...

    def keep(self, path: str, digest: str, seconds: float) -> None:
        """Note that a module has passed with a digest, and how long that took."""
        ...


class StampsBeside:
    """A file beside each module, with the version of Spark where that is not the environment's."""

    def __init__(self, spark_home: str | None = None) -> None:
        found = spark_version(Path(spark_home)) if spark_home else ""
        self._version = found.rpartition("-")[2]
        self._spark = ".".join(self._version.split(".")[:2])

    def known(self, path: str) -> Sequence[str]:
        """The digests in the module's file."""
        stamp = stamp_of(path, self._spark)
        known, *versions = stamp.read_text(encoding="utf-8").split() if stamp.exists() else ("",)
        return (known,) if versions == [self._version] * bool(self._version) else ()

    def keep(self, path: str, digest: str, seconds: float) -> None:  # noqa: ARG002 - costs.py has those
        """Write the module's file."""
        stamp_of(path, self._spark).write_text(f"{digest} {self._version}".rstrip() + "\n", encoding="utf-8")


class DeepRecord:
    """One file for all modules, with the commit and the day of each one's last deep run that passed."""

    def __init__(self) -> None:
        self._file = ROOT / DEEP_RECORD

    def known(self, path: str) -> Sequence[str]:
        """The digest of the module's last deep run that passed."""
        entry = self._entries().get(path)
        return () if entry is None else (entry["digest"],)

    def keep(self, path: str, digest: str, seconds: float) -> None:
        """Write the file anew, since a deep run may be ended at any time."""
        commit = (told_by_git(ROOT, "rev-parse", "--short", "HEAD") or "").strip()
        entry = {"on": f"{datetime.now(UTC):%F}", "commit": commit, "seconds": round(seconds), "digest": digest}
        entries = dict(sorted({**self._entries(), path: entry}.items()))
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(of)}" for name, of in entries.items())
        self._file.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")

    def _entries(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        return found


@dataclass
class _Module:
    """The tests of a module that its stamp is about, as far as they have ended."""

    digest: str
    total: int
    ended: int = 0
    is_whole: bool = True
    seconds: float = 0.0


class Passed:
    """A plugin of pytest that leaves out what has passed, and writes stamps."""

    def __init__(self, config: pytest.Config, tree: SourceTree | None, stamps: Stamps) -> None:
        """Without a tree nothing is known to have passed."""
        self._tree = tree
        self._stamps = stamps
        self._is_selecting = bool(config.getoption("changed_only"))
        # A part of a module that is asked for by its name says nothing of the rest.
        named = any("::" in argument for argument in config.args) or config.getoption("lf", default=False)
        self._is_stamping = not named
        self._modules: dict[str, _Module] = {}
        # The process that shares tests out hears of all of them.
        self._hears_all = not hasattr(config, "workerinput")
        self.left_out: dict[str, int] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> Passed:
        """The plugin of a run."""
        another_spark = os.environ.get("STARPRUNER_SPARK_HOME")
        has_stamps = not another_spark or (config.getoption("changed_only") and not DEEP)
        stamps = DeepRecord() if DEEP else StampsBeside(another_spark)
        return cls(config, _tree_of_checkout() if has_stamps else None, stamps)

    def select(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out those with stamps that have passed, and note at the others what their stamp would be."""
        if self._tree is None:
            return
        by_path: dict[str, list[pytest.Item]] = {}
        for item in items:
            if DEEP or any(map(item.get_closest_marker, _STAMPED)):
                by_path.setdefault(item.nodeid.partition("::")[0], []).append(item)
        out: set[pytest.Item] = set()
        for path, members in by_path.items():
            digest = digest_of(self._tree, path, members)
            if self._is_selecting and digest in self._stamps.known(path):
                out.update(members)
                self.left_out[path] = len(members)
            elif self._is_stamping:
                for item in members:
                    item.user_properties.append((_PROPERTY, (digest, len(members))))
        if out:
            config.hook.pytest_deselected(items=list(out))
            items[:] = [item for item in items if item not in out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test with a stamp, and write the stamp of its module after the last one."""
        properties: Mapping[str, Any] = dict(report.user_properties)
        if _PROPERTY not in properties or not self._hears_all:
            return
        path = report.nodeid.partition("::")[0]
        module = self._modules.setdefault(path, _Module(*properties[_PROPERTY]))
        module.is_whole &= not report.failed and not (report.skipped and _lacks_something(report))
        module.ended += report.when == "teardown"
        module.seconds += report.duration
        if module.is_whole and module.ended == module.total and report.when == "teardown":
            self._stamps.keep(path, module.digest, module.seconds)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A process that shares the tests tells the one that reports what it left out."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_out"] = self.left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it: each process has collected all tests."""
        self.left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what did not run."""
        if self.left_out:
            tests, modules = sum(self.left_out.values()), len(self.left_out)
            where = f"{modules} module{'s' if modules > 1 else ''}"
            terminalreporter.write_line(
                f"{tests} tests of {where} passed before, and all that they depend on is as it was"
            )


def _lacks_something(report: pytest.TestReport) -> bool:
    """True if a test was skipped for a reason of this machine."""
    if hasattr(report, "wasxfail"):
        return False
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return not any(known in reason for known in _EVERYWHERE)
