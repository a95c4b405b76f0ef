"""The shares of memory: together they are what is there, and where there is plenty they bound nothing."""

from dataclasses import astuple

import pytest

from proxy.config.config import Config
from proxy.config.memory_shares import AMPLE, BASE_BYTES, MemoryShares

MIB = 1024 * 1024


@pytest.mark.parametrize("limit", [128, 160, 512, 4096])
def test_all_shares_fit(limit: int) -> None:
    assert sum(astuple(MemoryShares.of(limit * MIB))) <= limit * MIB - BASE_BYTES


def test_the_longest_statement_that_is_parsed_has_room_in_half_a_gigabyte() -> None:
    statement_bytes = Config().rewrite.statement_chars_max * 600
    assert MemoryShares.of(512 * MIB).analysis_bytes > statement_bytes


@pytest.mark.parametrize("shares", [AMPLE, MemoryShares.of(4096 * MIB)])
def test_with_plenty_the_configuration_alone_bounds(shares: MemoryShares) -> None:
    settings = Config().proxy
    assert shares.connections_max > settings.connections_max
    assert shares.request_bytes_max > settings.request_bytes_max


def test_a_limit_that_nothing_fits_in_still_gives_shares() -> None:
    assert MemoryShares.of(1).connections_max > 50
    assert MemoryShares.of(1).request_bytes_max == MIB
