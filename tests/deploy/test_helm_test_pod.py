"""The pod of `helm test`, whose commands run here against a proxy with the chart's configuration."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from support.backend_farm import Mood, StandIn
from support.helm_chart import rendered
from support.scripted_session import PATIENCE_S

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess, proxy_process, starpruner_command

VALUES = Path(__file__).parent / "values" / "defaults.yaml"
SERVICE, ADMIN_SERVICE = "demo-starpruner:10001", "demo-starpruner-admin:10080"


@asynccontextmanager
async def installed(backend: StandIn, folder: Path) -> AsyncIterator[ProxyProcess]:
    """The proxy as its pod runs it, but for its addresses and the directory that it writes to."""
    await backend.listen()
    path = folder / "starpruner.toml"
    path.write_text(rendered(VALUES).toml, encoding="utf-8")
    options = (f"--config={path}", "--set", f"history.path={folder / 'history'}")
    endpoint = Endpoint.parse(str(backend.member.address))
    with ExitStack() as stack:
        # In a thread, since the backend answers on this event loop.
        yield await asyncio.to_thread(stack.enter_context, proxy_process(endpoint, folder, options=options))
    await backend.die()


async def run(container: dict[str, Any], proxy: ProxyProcess) -> tuple[int, str]:
    """Run the container's command, with the services of the cluster at this proxy."""
    command = [sys.executable, *container["command"][1:]] if "command" in container else starpruner_command()
    here = {
        SERVICE: str(proxy.endpoint),
        ADMIN_SERVICE: proxy.admin_url.removeprefix("http://"),
        # A busy machine is not what is tested.
        "timeout=10": "timeout=120",
    }
    words = container["args"]
    for there, address in here.items():
        words = [word.replace(there, address) for word in words]
    process = await asyncio.create_subprocess_exec(
        *command, *words, env=os.environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await process.communicate()
    return process.returncode or 0, told.decode()


async def until_not_ready(proxy: ProxyProcess) -> None:
    async with asyncio.timeout(PATIENCE_S), ClientSession() as client:
        while (await client.get(f"{proxy.admin_url}/readyz")).status == HTTPStatus.OK:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.2)


def containers() -> dict[str, dict[str, Any]]:
    return {container["name"]: container for container in rendered(VALUES).only("Pod")["spec"]["containers"]}


async def test_the_pod_opens_a_session_at_the_backend_and_finds_the_proxy_ready(tmp_path: Path) -> None:
    backend = StandIn()
    async with installed(backend, tmp_path) as proxy:
        session = await run(containers()["session"], proxy)
        admin = await run(containers()["admin"], proxy)
    assert (session[0], admin[0]) == (0, 0), session[1] + admin[1]
    assert "OpenSession" in backend.calls
    assert re.findall(r"^200 .*(/\w+)$", admin[1], re.MULTILINE) == ["/healthz", "/readyz", "/metrics"]


async def test_the_pod_fails_where_no_session_can_be_opened_or_no_backend_is_there(tmp_path: Path) -> None:
    backend = StandIn()
    async with installed(backend, tmp_path) as proxy:
        backend.mood = Mood.REFUSES_LOGINS
        session = await run(containers()["session"], proxy)
        await backend.die()
        # A backend is down once several probes in a row have failed.
        await until_not_ready(proxy)
        admin = await run(containers()["admin"], proxy)
    assert session[0] != 0
    assert "wrong password" in session[1]
    assert admin[0] != 0
    assert "503" in admin[1]
