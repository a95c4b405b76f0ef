"""The README is short, and the commands and settings in it are there."""

import re
import tomllib
from pathlib import Path

from click.testing import CliRunner

from proxy.cli import main
from proxy.config.config import load

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES_MAX = 160


def test_the_readme_can_be_read_at_one_sitting() -> None:
    assert len(README.splitlines()) <= LINES_MAX


def test_the_number_of_dependencies_in_the_readme_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert re.findall(r"(\w+) small dependencies", README) == [words[len(project["dependencies"])]]


def test_every_option_of_a_command_in_the_readme_is_there() -> None:
    commands = re.findall(r"^(?:\$ )?starpruner (\w+)(.*)$", README, re.MULTILINE)
    assert commands
    for command, rest in commands:
        told = CliRunner().invoke(main, [command, "--help"]).output
        assert [option for option in re.findall(r"(--[\w-]+)", rest) if option not in told] == []


def test_every_setting_in_the_readme_is_taken() -> None:
    settings = re.findall(r"--set ([\w.]+=\w+)", README)
    assert settings
    load(None, tuple(settings))
