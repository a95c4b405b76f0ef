"""Groups of tests, so that processes that share the tests start each server once.

Tests that use the same fixture of `conftest.py` go together, such as all that ask `spark`. A fixture counts by
where it is defined and not by its name: a module may have a fixture `spark` of its own. Tests of one module that
share a fixture of that module go together too: half of `tests/proxy/http/test_clients_over_http.py` asks `spark`
and half does not, but both halves ask the module's own server, which two processes would start twice.

The tests that ask `spark` are three groups, each with a server of its own: as one they would outlast all others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pytest

# Fixtures of conftest.py that start Spark. A test that uses two of them goes where the first one is.
SHARED = ("spark", "iceberg_server", "delta_server", "pipeline_spark", "local_spark")

# Groups of tests that ask `spark`, by their folder: tests that compare answers, statement by statement, and tests
# of clients and faults.
SPARK_ANSWERS = "spark_answers"
SPARK_CLIENTS = "spark_clients"
OF_FOLDER: Final = {
    "differential": SPARK_ANSWERS,
    "reach": SPARK_ANSWERS,
    "rewriter": SPARK_ANSWERS,
    "clients": SPARK_CLIENTS,
    "faults": SPARK_CLIENTS,
}

# The groups that take longest, by docs/test-times.md: a process that begins one of them last would end alone.
LONGEST_FIRST = (
    "spark",
    SPARK_ANSWERS,
    SPARK_CLIENTS,
    "iceberg_server",
    "delta_server",
    "containers",
    "pipeline_spark",
    "local_spark",
    "test_standalone_cluster.py",
    "test_pages_in_a_browser.py",
    "test_sieve.py",
    "test_kerberized_spark.py",
    "test_demo.py",
    "test_recorded_faults.py",
)

_CONFTEST = "tests"
_SCOPES_THAT_LAST = {"module", "package", "session"}


@dataclass(frozen=True)
class UsedFixture:
    """A fixture that a test uses: its name, where it is defined, and how long it lasts."""

    name: str
    # The path of a module, or "tests" for conftest.py, or "" for a plugin.
    defined_in: str
    scope: str

    @property
    def is_shared(self) -> bool:
        """Whether tests of several modules use it."""
        return self.name in SHARED and self.defined_in == _CONFTEST

    @property
    def binds_its_module(self) -> bool:
        """Whether two processes that run tests of its module would both start it."""
        return self.scope in _SCOPES_THAT_LAST and self.defined_in.endswith(".py")


@dataclass(frozen=True)
class GroupedTest:
    """A test, as far as its group depends on it."""

    path: str
    fixtures: Sequence[UsedFixture] = ()
    # The group that its module or its mark names.
    chosen: str | None = None

    @classmethod
    def of(cls, item: pytest.Item) -> "GroupedTest":
        """The test that pytest collected."""
        path = item.nodeid.partition("::")[0]
        marker = item.get_closest_marker("xdist_group")
        chosen = None if marker is None else str(marker.args[0])
        if not isinstance(item, pytest.Function):
            return cls(path, (), chosen)
        # The last definition of a name is the one in force.
        definitions = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - pytest has no other way to ask
        used = ((name, found[-1]) for name, found in definitions.items() if found)
        return cls(path, [UsedFixture(name, one.baseid, str(one.scope)) for name, one in used], chosen)

    @property
    def shared(self) -> set[str]:
        """The names of the shared fixtures that it uses."""
        return {fixture.name for fixture in self.fixtures if fixture.is_shared}


def groups_of(tests: Sequence[GroupedTest]) -> list[str]:
    """The group of each test."""
    by_path: dict[str, list[GroupedTest]] = {}
    for test in tests:
        by_path.setdefault(test.path, []).append(test)
    groups = {id(test): group for path, members in by_path.items() for test, group in _of_module(path, members)}
    return [groups[id(test)] for test in tests]


def _of_module(path: str, tests: Sequence[GroupedTest]) -> Iterator[tuple[GroupedTest, str]]:
    for together in _bound(tests):
        shared = set(chain.from_iterable(test.shared for test in together))
        by_fixtures = next((name for name in SHARED if name in shared), path.rpartition("/")[2])
        if by_fixtures == "spark":
            by_fixtures = OF_FOLDER.get(path.split("/")[1], by_fixtures)
        for test in together:
            yield test, test.chosen or by_fixtures


def _bound(tests: Sequence[GroupedTest]) -> list[list[GroupedTest]]:
    """The tests of a module in sets: those of two sets share no fixture of the module."""
    sets: list[tuple[set[str], list[GroupedTest]]] = []
    for test in tests:
        names = {fixture.name for fixture in test.fixtures if fixture.binds_its_module}
        joined = [one for one in sets if one[0] & names]
        sets = [one for one in sets if not one[0] & names]
        merged = names.union(*(one[0] for one in joined))
        sets.append((merged, [*chain.from_iterable(one[1] for one in joined), test]))
    return [members for _, members in sets]


def rank(group: str) -> int:
    """The place of a group in the order in which groups begin."""
    return LONGEST_FIRST.index(group) if group in LONGEST_FIRST else len(LONGEST_FIRST)


def longest_first(items: Sequence[pytest.Item], groups: Mapping[pytest.Item, str]) -> list[pytest.Item]:
    """The tests in the order in which their groups are to begin, otherwise as they were."""
    return sorted(items, key=lambda item: rank(groups[item]))
