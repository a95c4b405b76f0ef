"""Files that images are built from, and those of Compose, without a Docker engine."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.helm_chart import CHART

from proxy.config.config import load
from proxy.workers.launch import CLOSE_S

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy" / "docker"
DOCKERFILE = (DOCKER / "proxy.Dockerfile").read_text(encoding="utf-8")
COMPOSE = ROOT / "deploy" / "compose"
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


def needed(extra: str) -> Iterator[Requirement]:
    """The dependencies of the proxy and of an extra, and theirs, each as somebody asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = list(requirements([*project["dependencies"], *project["optional-dependencies"][extra]]))
    seen = set()
    while waiting:
        requirement = waiting.pop()
        yield requirement
        if requirement.name not in seen:
            seen.add(requirement.name)
            asked = distribution(requirement.name).requires or []
            waiting += requirements(asked, tuple(requirement.extras))


@pytest.mark.parametrize(
    ("extra", "files"),
    [
        ("zookeeper", ["requirements.txt"]),
        ("tracing", ["requirements.txt", "tracing-requirements.txt"]),
        ("demo", ["requirements.txt", "spark-requirements.txt"]),
    ],
)
def test_an_image_has_what_its_programs_need_in_one_version_each(extra: str, files: list[str]) -> None:
    pinned = {name: version for file in files for name, version in pins(file).items()}
    asked = list(needed(extra))
    assert {canonicalize_name(requirement.name) for requirement in asked} | {"kazoo"} == pinned.keys()
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


@pytest.mark.parametrize("name", ["proxy.Dockerfile", "spark.Dockerfile"])
def test_the_files_that_are_copied_are_there_and_reach_the_build(name: str) -> None:
    dockerfile = (DOCKER / name).read_text(encoding="utf-8")
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
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


def composed() -> dict[str, Any]:
    """The services of Compose."""
    services: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


def test_every_file_that_compose_mounts_is_there() -> None:
    mounted = [volume.split(":")[0] for each in composed().values() for volume in each.get("volumes", [])]
    own = [path for path in mounted if path.startswith("./")]
    assert own
    assert [path for path in own if not (COMPOSE / path).is_file()] == []


def test_the_proxies_of_compose_are_those_that_are_balanced_and_watched() -> None:
    config = load(COMPOSE / "starpruner.toml")
    clients, admin = (listen.rpartition(":")[2] for listen in (config.proxy.listen, config.admin.listen))
    proxies = [name for name in composed() if name.startswith("proxy-")]
    balanced = re.findall(
        r"^ +server \w+ (\S+) check port (\d+)", (COMPOSE / "haproxy.cfg").read_text("utf-8"), re.MULTILINE
    )
    assert balanced == [(f"{name}:{clients}", admin) for name in proxies]
    prometheus = yaml.safe_load((COMPOSE / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{name}:{admin}" for name in proxies]}]
    assert list(config.admin.hosts) == proxies


def test_the_proxies_of_compose_have_the_time_to_drain_and_to_close() -> None:
    config = load(COMPOSE / "starpruner.toml")
    for name, service in composed().items():
        if name.startswith("proxy-"):
            assert int(service["stop_grace_period"].removesuffix("s")) > config.proxy.drain_s + CLOSE_S
