"""Long statements of many sessions at once, more than memory bears: the proxy stays below its limit, and serves.

The limit is one that the proxy keeps by itself; tests/containers has one that the kernel keeps.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from async_client import AsyncClient
from prometheus_client.parser import text_string_to_metric_families
from soak_stage import Stage, soak_stage
from support.profile import DEEP

LIMIT_BYTES = 160 * 1024 * 1024
# Four times as many bytes as may be on their way, and in the deep run twenty times.
SESSIONS = 400 if DEEP else 100
CHARACTERS = 200_000
LOOK_S = 0.01


def a_comment(_: int) -> str:
    return f"SELECT 1 /* {'x' * CHARACTERS} */ AS n"


def a_join(number: int, characters: int = CHARACTERS) -> str:
    """A statement that is to be parsed; its tree takes 28 MB."""
    literals = ", ".join(str(100_000 + literal) for literal in range(characters // 8))
    return f"SELECT f.a, {number} AS n FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1 AND f.x IN ({literals})"


def a_shorter_join(number: int) -> str:
    """There is room for the trees of some of these at once."""
    return a_join(number, CHARACTERS // 20)


@pytest.mark.parametrize("statement", [a_comment, a_join, a_shorter_join])
async def test_long_statements_at_once_are_served_within_the_limit(
    tmp_path: Path, statement: Callable[[int], str]
) -> None:
    with soak_stage(tmp_path, f"proxy.memory_bytes_max={LIMIT_BYTES}") as stage:
        clients = await AsyncClient.crowd(stage.endpoint, SESSIONS)
        looking = asyncio.create_task(peak_of(stage))
        await asyncio.gather(*(client.execute(statement(number)) for number, client in enumerate(clients)))
        looking.cancel()
        assert await looking < LIMIT_BYTES
        await stage.serves()
        assert await asyncio.to_thread(shortages, stage.admin_url) > 0
        await asyncio.gather(*(client.leave() for client in clients))


async def peak_of(stage: Stage) -> int:
    """The most memory that the proxy has, until the task is cancelled."""
    peak = 0
    try:
        while True:
            peak = max(peak, stage.footprint.bytes)
            await asyncio.sleep(LOOK_S)
    except asyncio.CancelledError:
        return peak


def shortages(admin_url: str) -> float:
    with urlopen(f"{admin_url}/metrics") as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    (found,) = [family for family in families if family.name == "starpruner_memory_short"]
    return sum(sample.value for sample in found.samples)
