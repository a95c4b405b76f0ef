"""Processor time of each test, its own process and the processes under it told apart.

With STARPRUNER_TEST_COSTS=path in the environment each test appends a line of JSON to that file:

    {"test": "tests/proxy/net/test_tls.py::test_x", "group": "test_tls.py", "wall_s": 0.4, "python_s": 0.3,
     "java_s": 0.0, "others_s": 0.0, "worker": "gw0"}

`java_s` is the time of the Java processes that outlive the test, such as a server that tests share; Java that
starts and ends within a test, such as beeline, is among the others. A fixture's start counts for the first test
that uses it. `python tests/support/costs.py path` prints the sums by group and by file.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# Files of which the summary has a line; the others follow as one sum.
FILES_SHOWN_MAX = 60


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds that this process and its descendants have used so far."""

    wall_s: float
    python_s: float
    # Ended descendants included.
    descendants_s: float
    # By process id.
    java_s: Mapping[int, float]

    @classmethod
    def now(cls) -> "ProcessorTime":
        """Reads /proc, which takes a few milliseconds."""
        processes = _processes()
        under = {os.getpid()}
        # A child may have a lower id than its parent, so once over the list is not enough.
        while more := {pid for pid, (parent, _, _, _) in processes.items() if parent in under} - under:
            under |= more
        own = os.times()
        descendants_s = own.children_user + own.children_system
        java_s = {}
        for pid in under - {os.getpid()}:
            _, command, used_s, by_children_s = processes[pid]
            descendants_s += used_s + by_children_s
            if command == "java":
                java_s[pid] = used_s
        return cls(time.monotonic(), own.user + own.system, descendants_s, java_s)


def _processes() -> dict[int, tuple[int, str, float, float]]:
    """Parent, command, seconds used, and seconds that ended children used, by process id."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a path object for each process would take twice as long
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat") as file:  # noqa: PTH123 - the same
                    text = file.read()
            except OSError:
                continue
            command, _, rest = text.partition("(")[2].rpartition(")")
            words = rest.split()
            user, system, children_user, children_system = (int(word) / _TICKS_PER_S for word in words[11:15])
            found[int(name)] = (int(words[1]), command, user + system, children_user + children_system)
    return found


@dataclass
class CostRecorder:
    """A pytest plugin that appends what each test has cost to a file."""

    path: Path
    _last: ProcessorTime = field(default_factory=ProcessorTime.now)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Counts from the end of the last test, so that nothing between two tests is lost."""
        before = self._last
        started = time.monotonic()
        result = yield
        after = self._last = ProcessorTime.now()
        python_s = after.python_s - before.python_s
        java_s = sum(used_s - before.java_s.get(pid, 0.0) for pid, used_s in after.java_s.items())
        others_s = after.descendants_s - before.descendants_s - java_s
        marker = item.get_closest_marker("xdist_group")
        cost = {
            "test": item.nodeid.partition("@")[0],
            "group": marker.args[0] if marker else "",
            "wall_s": after.wall_s - started,
            "python_s": python_s,
            "java_s": java_s,
            "others_s": others_s,
        }
        rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in cost.items()}
        rounded["worker"] = os.environ.get("PYTEST_XDIST_WORKER", "")
        with self.path.open("a") as file:
            print(json.dumps(rounded), file=file)
        return result


_SUMMED = ("wall_s", "python_s", "java_s", "others_s")


def summary(costs: Sequence[Mapping[str, Any]]) -> str:
    """Tables in Markdown by group and by file, the most expensive first."""
    by_group = _sums(costs, lambda cost: str(cost["group"]))
    by_file = _sums(costs, lambda cost: str(cost["test"]).partition("::")[0])
    return "\n\n".join((_table("group", by_group), _table("file", by_file)))


def _sums(costs: Sequence[Mapping[str, Any]], key: Any) -> dict[str, list[float]]:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * (1 + len(_SUMMED)))
    for cost in costs:
        row = sums[key(cost)]
        row[0] += 1
        for place, name in enumerate(_SUMMED, 1):
            row[place] += cost[name]
    return sums


def _table(heading: str, sums: Mapping[str, Sequence[float]]) -> str:
    ordered = sorted(sums.items(), key=lambda one: -sum(one[1][2:]))
    shown, rest = ordered[:FILES_SHOWN_MAX], ordered[FILES_SHOWN_MAX:]
    if rest:
        shown.append(
            (f"{len(rest)} others", [sum(column) for column in zip(*(row for _, row in rest), strict=True)])
        )
    shown.append(("all", [sum(column) for column in zip(*sums.values(), strict=True)]))
    lines = [f"| {heading} | tests | wall s | Python s | Java s | others s |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {row[0]:.0f} | " + " | ".join(f"{one:.0f}" for one in row[1:]) + " |" for name, row in shown
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(summary([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]) + "\n")
