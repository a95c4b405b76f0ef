"""The commands of docs/clusters.md: each is run by tests/pipeline/test_standalone_cluster.py, or says why not."""

import re
import shlex
import tomllib
from pathlib import Path

from support.guide import block, page

ROOT = Path(__file__).parents[2]
GUIDE = page("clusters.md")
RUN_BY = ROOT / "tests" / "pipeline" / "test_standalone_cluster.py"
MARK = re.compile(r"<!-- (?:guide: (?P<name>[\w-]+)|not run: \w.*) -->")


def test_each_command_is_run_or_says_why_it_is_not() -> None:
    before = re.findall(r"(.*)\n```sh\n", GUIDE)
    marks = [MARK.fullmatch(line) for line in before]
    assert marks
    assert None not in marks
    run = RUN_BY.read_text(encoding="utf-8")
    assert [mark["name"] for mark in marks if mark and mark["name"] and f'"{mark["name"]}"' not in run] == []


def test_the_packages_of_the_jobs_are_those_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [word for word in shlex.split(block(GUIDE, "wheels")) if ">=" in word]
    assert len(asked) == 2
    assert set(asked) <= set(project["dependencies"])
