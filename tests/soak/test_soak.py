"""Everything that clients do, at random and for a while: memory and open files come to rest.

Two minutes with STARPRUNER_DEEP=1, and STARPRUNER_SOAK_S for as long as one likes.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import median

import pytest
from async_client import AsyncClient
from soak_stage import Stage, soak_stage
from support.footprint import Footprint
from support.profile import DEEP

from proxy.wire.hs2 import calls as hs2_calls

SECONDS = float(os.environ.get("STARPRUNER_SOAK_S") or (120 if DEEP else 0))
CLIENTS = 40
STEPS_MAX = 20
# Answers to the proxy's own queries have a megabyte here, ten once they are decoded, so memory breathes by some
# dozens of megabytes. It may not grow by more from the second third of the time to the last: in the first, pools
# fill. What leaks a batch shows at once, what leaks a session in hours.
GROWTH_BYTES_MAX = 48 * 1024 * 1024
LOOK_S = 0.2
SEED = 6

STATEMENTS = (
    "select 1",
    "SELECT 3",
    "SHOW TABLES",
    "SET spark.sql.ansi.enabled=true",
    "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1",
    "INSERT INTO f SELECT 1",
    f"SELECT '{'x' * 10_000}' AS long",
)

Step = Callable[[AsyncClient, Random], Awaitable[None]]


async def a_round_trip(client: AsyncClient, _: Random) -> None:
    await client.get_info()


async def a_statement(client: AsyncClient, random: Random) -> None:
    operation = await client.execute(random.choice(STATEMENTS))
    for _ in range(random.randrange(4)):
        await client.of_operation(hs2_calls.GET_OPERATION_STATUS, operation)
    for _ in range(random.randrange(4)):
        await client.fetch(operation)
    if random.random() < 0.3:
        await client.of_operation(hs2_calls.CANCEL_OPERATION, operation)
    if random.random() < 0.8:
        await client.of_operation(hs2_calls.CLOSE_OPERATION, operation)


async def calls_at_once(client: AsyncClient, random: Random) -> None:
    operation = await client.execute("SELECT 2")
    for _ in range(random.randrange(5)):
        client.send(hs2_calls.encode_fetch(1, operation, 10_000))
    await client.fetch(operation)
    raise ConnectionError("the replies are nobody's")


async def a_new_session(client: AsyncClient, _: Random) -> None:
    await client.close_session()
    raise ConnectionError("that was the end of it")


async def half_a_call(client: AsyncClient, random: Random) -> None:
    call = hs2_calls.encode_open_session(1, "soak", "soak", {})
    client.send(call[: random.randrange(len(call))])
    raise ConnectionError("and gone")


# The first two are what clients mostly do.
STEPS: tuple[Step, ...] = (a_round_trip, a_statement, calls_at_once, a_new_session, half_a_call)
WEIGHTS = (6, 10, 1, 1, 1)


async def one_client(stage: Stage, until: float, seed: int) -> int:
    """Comes, does a few things and goes, again and again. Returns how many things it did."""
    random, done = Random(seed), 0  # noqa: S311 - the same each time
    while time.monotonic() < until:
        client = await AsyncClient.with_session(stage.endpoint)
        with suppress(ConnectionError):
            for step in random.choices(STEPS, WEIGHTS, k=random.randrange(STEPS_MAX)):
                await step(client, random)
                done += 1
        await (client.vanish if random.random() < 0.3 else client.leave)()
    return done


async def looked_at(stage: Stage, until: float) -> list[Footprint]:
    found = []
    while time.monotonic() < until:
        found.append(stage.footprint)
        await asyncio.sleep(LOOK_S)
    return found


@pytest.mark.skipif(not SECONDS, reason="takes its time: STARPRUNER_DEEP=1 or STARPRUNER_SOAK_S=10")
async def test_memory_and_open_files_come_to_rest_under_everything_that_clients_do(tmp_path: Path) -> None:
    with soak_stage(tmp_path, "rewrite.cost_gate=false") as stage:
        before = await stage.at_rest()
        until = time.monotonic() + SECONDS
        looking = asyncio.create_task(looked_at(stage, until))
        done = await asyncio.gather(*(one_client(stage, until, SEED + number) for number in range(CLIENTS)))
        found = await looking
        await stage.has_only(before.files)
        await stage.serves()
        middle, late = _medians(found)
        logging.getLogger(__name__).info(
            "%d steps; %.0f MB in the second third, %.0f MB in the last; %d files at most",
            *(sum(done), middle / 2**20, late / 2**20, max(one.files for one in found)),
        )
        assert sum(done) > CLIENTS
        assert late - middle < GROWTH_BYTES_MAX
        assert "Traceback" not in stage.log.read_text()


def _medians(found: list[Footprint]) -> tuple[float, float]:
    third = len(found) // 3
    return median(one.bytes for one in found[third:-third]), median(one.bytes for one in found[-third:])
