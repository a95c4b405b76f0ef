"""Where the clients come from, and what happens where one cannot be had."""

from pathlib import Path

import pytest
from drivers import HIVE_4, hive_4_driver
from support.maven import REQUIRED, ClientMissingError, is_required, require_compiler

from demo.java import Java


def test_a_driver_that_was_fetched_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    jar = tmp_path / f"hive-jdbc-{HIVE_4}-standalone.jar"
    jar.touch()
    assert hive_4_driver(tmp_path).class_path.split(":")[0] == str(jar)


def test_without_maven_a_driver_is_missing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ClientMissingError, match="there is no mvn on PATH"):
        hive_4_driver(tmp_path)


@pytest.mark.parametrize(("said", "required"), [({}, False), ({REQUIRED: "0"}, False), ({REQUIRED: "1"}, True)])
def test_a_missing_client_is_a_failure_only_where_that_is_said(said: dict[str, str], *, required: bool) -> None:
    assert is_required(said) is required


@pytest.mark.parametrize(("said", "outcome"), [("0", pytest.skip.Exception), ("1", ClientMissingError)])
def test_a_java_without_a_compiler_is_a_missing_client(
    said: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUIRED, said)
    runtime, kit = Java(Path("java"), "17"), Java(Path("java"), "17")
    vars(runtime)["modules"], vars(kit)["modules"] = {"java.base"}, {"java.base", "jdk.compiler"}
    require_compiler(kit)
    with pytest.raises(outcome, match="has no compiler"):
        require_compiler(runtime)
