"""Files that the image of the proxy is built from. Building it and running it is for a Docker engine."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.helm_chart import CHART

from proxy.config.config import load

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy" / "docker"
DOCKERFILE = (DOCKER / "proxy.Dockerfile").read_text(encoding="utf-8")
# The image's Python.
PYTHON = {"python_version": "3.12", "python_full_version": "3.12.0"}


def pins(name: str) -> dict[str, str]:
    """The versions that a file pins, by the names of packages."""
    lines = (DOCKER / name).read_text(encoding="utf-8").splitlines()
    found = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert list(found) == sorted(found)
    return found


def requirements(lines: list[str], extras: tuple[str, ...] = ()) -> Iterator[Requirement]:
    """Those of the lines that hold in the image."""
    for line in lines:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**PYTHON, "extra": extra}) for extra in ("", *extras)):
            yield requirement


def needed() -> Iterator[Requirement]:
    """The dependencies of the proxy and theirs, each as somebody asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = project["optional-dependencies"]["zookeeper"]
    waiting = list(requirements([*project["dependencies"], *extra]))
    seen = set()
    while waiting:
        requirement = waiting.pop()
        yield requirement
        if requirement.name not in seen:
            seen.add(requirement.name)
            asked = distribution(requirement.name).requires or []
            waiting += requirements(asked, tuple(requirement.extras))


def test_the_image_has_what_the_proxy_needs_in_one_version_each() -> None:
    pinned = pins("requirements.txt")
    asked = list(needed())
    assert {canonicalize_name(requirement.name) for requirement in asked} == pinned.keys()
    assert [
        str(requirement)
        for requirement in asked
        if not requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])
    ] == []


def test_the_wheel_is_built_by_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = pins("build-requirements.txt")
    for requirement in map(Requirement, project["build-system"]["requires"]):
        assert requirement.specifier.contains(pinned[requirement.name])


def test_what_is_copied_is_there_and_reaches_the_build() -> None:
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for word in line.split()
    ]
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied
    for path in copied:
        assert (ROOT / path).exists()
        assert f"!{path.split('/')[0]}" in let_in


def test_the_image_runs_as_the_user_of_the_chart_and_not_as_root() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    helpers = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    assert re.findall(r"runAsUser: (\d+)", helpers) == [user]
    assert int(user) != 0


def test_the_ports_of_the_image_are_those_of_its_configuration() -> None:
    config = load(DOCKER / "starpruner.toml")
    ports = {config.proxy.listen.rpartition(":")[2], config.admin.listen.rpartition(":")[2]}
    (exposed,) = re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE)
    assert set(exposed.split()) == ports
    (probed,) = re.findall(r"127\.0\.0\.1:(\d+)/healthz", DOCKERFILE)
    assert config.admin.listen.endswith(f":{probed}")
