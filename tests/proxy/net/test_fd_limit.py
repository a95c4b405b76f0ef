"""Room for as many clients as the configuration allows."""

import logging
import resource
from collections.abc import Iterator

import pytest

from proxy.net.fd_limit import raise_fd_limit


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_for_the_clients_that_may_come() -> None:
    raise_fd_limit(100)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 456 + 2_048


def test_a_limit_that_is_high_enough_stays() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (2_400, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    raise_fd_limit(10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 2_400


def test_where_the_system_allows_fewer_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        pytest.skip("this system has no limit")
    with caplog.at_level(logging.WARNING):
        raise_fd_limit(hard)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    assert f"the system allows {hard} open files" in caplog.text
