"""A table at the end of a run: the tests that were skipped for what this machine lacks, and what that is.

Among hundreds of skipped tests, those are lines like any other. The others are skipped by choice: their reasons
say what runs them, an environment variable of ours, or that golden/verified has them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pytest

# Parts of the reasons of tests that are skipped by choice. All else is a lack: no new reason is overlooked.
BY_CHOICE: Final = ("STARPRUNER_", "golden/verified")
TITLE: Final = "not tested here, and why"
# One line of a terminal: the short summary has the whole reason.
REASON_CHARS_MAX: Final = 100


@dataclass(frozen=True, order=True)
class Skipped:
    """A skipped test, or a module that was skipped as a whole before its tests were known."""

    reason: str
    folder: str
    is_module: bool = False

    @classmethod
    def of(cls, report: pytest.TestReport | pytest.CollectReport) -> "Skipped":
        """The report of something that was skipped, as its place and "Skipped: REASON"."""
        assert isinstance(report.longrepr, tuple)
        lines = report.longrepr[2].removeprefix("Skipped: ").strip().splitlines()
        folder = report.nodeid.partition("::")[0].rpartition("/")[0]
        return cls(lines[0] if lines else "", folder, isinstance(report, pytest.CollectReport))

    @property
    def is_by_choice(self) -> bool:
        """True if the test would run on this machine."""
        return any(part in self.reason for part in BY_CHOICE)


def lines(skipped: Iterable[Skipped]) -> Iterator[str]:
    """A line for each thing that the machine lacks, with the number of tests by folder."""
    lacking = sorted(one for one in skipped if not one.is_by_choice)
    for reason, tests in groupby(lacking, key=lambda one: one.reason):
        places = (
            f"{_count(list(found))} in {folder}" for folder, found in groupby(tests, key=lambda one: one.folder)
        )
        yield f"{reason[:REASON_CHARS_MAX]}: {', '.join(places)}"


def _count(found: Sequence[Skipped]) -> str:
    modules = sum(one.is_module for one in found)
    counts = ((len(found) - modules, "test"), (modules, "module"))
    return " and ".join(f"{count} {noun}{'s' if count > 1 else ''}" for count, noun in counts if count)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Writes the table after all else, which the outermost wrapper does."""
    yield
    if told := list(lines(map(Skipped.of, terminalreporter.stats.get("skipped", ())))):
        terminalreporter.section(TITLE)
        for line in told:
            terminalreporter.line(line)
