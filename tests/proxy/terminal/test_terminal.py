"""`starpruner top` and `starpruner digests`, against an admin port."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from click.testing import CliRunner, Result
from support.admin_pages import PASSWORD, admin_port, busy_history
from support.histories import history_in

from proxy.cli import main
from proxy.operations.session_port import SessionOpening
from proxy.terminal.tables import table

Run = Callable[..., Awaitable[Result]]
ROOT, BOB = ("--user", "root"), ("--user", "bob")


def runner(port: TestClient[Any, Any]) -> Run:
    async def run(*arguments: str, password: str | None = PASSWORD, typed: str = "") -> Result:
        env = {"STARPRUNER_PASSWORD": password, "STARPRUNER_USER": None}
        command = [*arguments, "--admin", f"http://{port.host}:{port.port}/"]
        return await asyncio.to_thread(CliRunner().invoke, main, command, env=env, input=typed)

    return run


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Run]:
    async with admin_port(monkeypatch, busy_history(tmp_path)) as port:
        yield runner(port)


async def test_top_shows_what_runs_the_backends_and_the_sessions(run: Run) -> None:
    told = await run("top", "--once", *ROOT)
    assert told.exit_code == 0, told.output
    lines = told.output.splitlines()
    assert lines[0].endswith(": 1 statement runs, 2 sessions are open, 2 of 2 backends healthy")
    assert next(line.split() for line in lines if "SENT AS" in line)[:2] == ["SINCE", "FOR"]
    (running,) = (line for line in lines if "SELECT count(*)" in line)
    assert running.endswith("ann   10.0.0.7  original  SELECT count(*) FROM sales WHERE note = 'running'")
    assert any(line.startswith("spark-b:10000  ") and line.endswith("Connection refused") for line in lines)
    assert any(line.endswith("bob   HTTP               0  shop") for line in lines)


async def test_a_user_sees_the_own_statements_in_the_terminal_too(run: Run) -> None:
    told = await run("top", "--once", *BOB)
    assert "0 statements run, 1 session is open" in told.output
    assert "ann" not in told.output


async def test_digests_are_those_of_the_page(run: Run) -> None:
    told = await run("digests", *ROOT)
    assert told.exit_code == 0, told.output
    header, *lines = told.output.splitlines()
    assert header.split()[:4] == ["RUNS", "IN", "ALL", "REWRITTEN"]
    answered = json.loads((await run("digests", "--json", *ROOT)).output)["digests"]
    assert len(lines) == len(answered)
    assert [line.split()[0] for line in lines] == [f"{one['runs']:,}" for one in answered]
    assert lines[0].endswith(" ".join(answered[0]["excerpt"].split()))


async def test_digests_compare_two_days(run: Run) -> None:
    today = time.strftime("%Y-%m-%d")
    told = await run("digests", "--compare", "2026-01-01", today, *ROOT)
    assert f"{today}  2026-01-01  NOT READ" in told.output.splitlines()[0]
    told = await run("digests", "--compare", "yesterday", today, *ROOT)
    assert told.exit_code == 1
    assert told.output.startswith("Error: The request is not understood: Invalid RFC3339 encoded date")


async def test_the_report_of_shadow_mode_is_that_of_the_page(run: Run) -> None:
    told = await run("report", "--days", "2", *ROOT)
    assert told.exit_code == 0, told.output
    assert told.output.startswith(
        "In the last 2 days 6 statements ran in shadow mode; 6 of them ran a second time,"
    )
    assert "TABLE  STATEMENTS  AS ORIGINALS  REWRITTEN  SAVED\nsales           6    3 min 48 s" in told.output
    assert json.loads((await run("report", "--json", *ROOT)).output)["times"]["statements"] == 6
    assert (await run("report", *BOB)).output == "No statement has run in shadow mode in the last 7 days.\n"


async def test_json_of_top_has_both_answers_in_one_document(run: Run) -> None:
    told = json.loads((await run("top", "--json", *ROOT)).output)
    assert told["now"]["running_count"] == 1
    assert [one["name"] for one in told["backends"]] == ["spark-a:10000", "spark-b:10000"]


async def test_who_is_not_let_in_reads_why(run: Run) -> None:
    for arguments in (("top", "--once"), ("digests",)):
        told = await run(*arguments)
        assert (told.exit_code, told.output) == (
            1,
            "Error: Sign in: send a name and a password by HTTP Basic, or use the page.\n",
        )
        told = await run(*arguments, *BOB, password="wrong")  # noqa: S106 - of no account
        assert (told.exit_code, "refused user 'bob'" in told.output) == (1, True)


async def test_a_person_is_asked_for_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.terminal.admin_client._is_somebody_there", lambda: True)
    told = await run("top", "--once", password=None, typed=f"bob\n{PASSWORD}\n")
    assert told.exit_code == 0, told.output
    assert "1 session is open" in told.output
    assert PASSWORD not in told.output
    told = await run("digests", *BOB, password=None, typed=f"{PASSWORD}\n")
    assert "User" not in told.output
    assert told.exit_code == 0


@pytest.mark.parametrize("address", ["127.0.0.1:1", "http://[:1", "nowhere.invalid:10080"])
def test_an_address_without_a_proxy_is_an_error_in_a_sentence(address: str) -> None:
    told = CliRunner().invoke(main, ["digests", "--admin", address])
    assert told.exit_code == 1
    assert told.output.startswith("Error: cannot reach the admin port http://")


def test_a_port_that_is_none_is_told_with_an_address_that_could_be() -> None:
    told = CliRunner().invoke(main, ["top", "--admin", "http://127.0.0.1:99999"])
    assert "it is no address such as http://127.0.0.1:10080" in told.output


async def test_top_asks_again_until_it_is_stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("proxy.terminal.commands.sleep", sleep)
    told = await run("top", "--every", "5", *ROOT)
    assert (told.exit_code, waited) == (0, [5.0, 5.0, 5.0])
    assert told.output.count("1 statement runs") == 3


async def test_a_history_that_is_off_is_an_error_for_digests_and_none_for_top(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with admin_port(monkeypatch, history_in(None), is_open=True) as port:
        run = runner(port)
        assert (await run("top", "--once")).exit_code == 0
        told = await run("digests")
        assert (told.exit_code, "history.enabled" in told.output) == (1, True)


async def test_statements_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_in(None)
    session = history.session_opened(SessionOpening({}, "o", "ann\x1b[2J", "10.0.0.7"))
    session.began("SELECT\n'\x1b]0;mine\x07\u202e'")
    async with admin_port(monkeypatch, history, is_open=True) as port:
        told = await runner(port)("top", "--once")
    assert "SELECT ' ]0;mine '" in told.output
    assert not {"\x1b", "\x07", "\u202e"} & set(told.output)


def test_a_table_fits_into_the_terminal_and_is_whole_elsewhere() -> None:
    rows = [["1", "short", "x" * 100], ["1,000", "y" * 100, "z"]]
    assert max(map(len, table(["N>", "NAME", "TEXT"], rows, 100))) == 100
    assert len(table(["N>", "NAME", "TEXT"], rows, None)[1]) == 5 + 2 + 60 + 2 + 100
    assert len(table(["N>", "NAME", "TEXT"], rows, 10)[1]) == 5 + 2 + 60 + 2 + 20
