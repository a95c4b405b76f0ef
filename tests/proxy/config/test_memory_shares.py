"""The shares of memory: together they are what is there, and where there is plenty they bound nothing."""

from dataclasses import astuple

import pytest

from proxy.config.config import Config
from proxy.config.memory_shares import AMPLE, BASE_BYTES, MemoryShares

MIB = 1024 * 1024


@pytest.mark.parametrize("wraps_replies", [False, True])
@pytest.mark.parametrize("limit", [128, 160, 512, 4096])
def test_all_shares_fit(limit: int, wraps_replies: bool) -> None:  # noqa: FBT001
    shares = MemoryShares.of(limit * MIB, wraps_replies=wraps_replies)
    assert sum(astuple(shares)) <= limit * MIB - BASE_BYTES


@pytest.mark.parametrize(("limit", "reply"), [(512, 27), (1024, 61), (2048, 130)])
def test_wrapped_replies_have_what_the_page_on_kerberos_says(limit: int, reply: int) -> None:
    shares = MemoryShares.of(limit * MIB, wraps_replies=True)
    assert shares.wrapped_reply_bytes_max // MIB == reply
    assert 2 * shares.analysis_bytes == pytest.approx(MemoryShares.of(limit * MIB).analysis_bytes, abs=1)


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
