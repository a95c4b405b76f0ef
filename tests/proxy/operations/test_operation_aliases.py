"""Operation aliases, within one process and across several."""

from collections.abc import Iterator

import pytest
from support.shared_state import DIGESTS, Beside, ledger

from proxy.operations.operation_aliases import LocalOperationAliases, OperationAliases
from proxy.wire.hs2.calls import OperationId, SessionHandle
from proxy.workers.shared_aliases import SharedOperationAliases

OLD, OLDER, NEW, NEWER = (OperationId(name * 11) for name in (b"old ", b"odd ", b"new ", b"neat"))
HERE, THERE = SessionHandle(b"here"), SessionHandle(b"there")
ALIASES_MAX = 2


@pytest.fixture(params=["one process", "several"])
def aliases(request: pytest.FixtureRequest) -> Iterator[OperationAliases]:
    if request.param == "one process":
        yield LocalOperationAliases(ALIASES_MAX)
        return
    with ledger() as opened:
        yield SharedOperationAliases(opened, DIGESTS, ALIASES_MAX)


def test_an_alias_names_its_operation_until_it_is_closed(aliases: OperationAliases) -> None:
    assert aliases.operation_of(OLD) is None
    assert aliases.add(OLD, NEW, HERE)
    assert not aliases.is_empty
    assert aliases.operation_of(OLD) == NEW
    assert aliases.operation_of(NEW) is None
    assert aliases.alias_closed(OLD) == NEW
    assert aliases.operation_of(OLD) is aliases.alias_closed(OLD) is None


def test_aliases_end_with_their_session_and_no_other(aliases: OperationAliases) -> None:
    aliases.add(OLD, NEW, HERE)
    aliases.add(OLDER, NEWER, THERE)
    aliases.sessions_ended([HERE])
    assert aliases.operation_of(OLD) is None
    assert aliases.operation_of(OLDER) == NEWER


def test_past_the_bound_no_alias_is_added(aliases: OperationAliases) -> None:
    assert aliases.add(OLD, NEW, HERE)
    assert aliases.add(OLDER, NEWER, HERE)
    assert not aliases.has_room
    assert not aliases.add(NEW, NEWER, HERE)
    aliases.alias_closed(OLD)
    assert aliases.has_room


def test_another_worker_finds_it_and_what_is_kept_names_neither() -> None:
    with ledger(0) as opened:
        SharedOperationAliases(opened, DIGESTS).add(OLD, NEW, HERE)
        assert SharedOperationAliases(Beside(opened, 1), DIGESTS).operation_of(OLD) == NEW
        found = opened.environment.open_db(b"aliases")
        with opened.environment.begin() as transaction, transaction.cursor(found) as cursor:
            kept = b"".join(key + value for key, value in cursor)
    assert kept
    assert not any(name in kept for name in (OLD, NEW, HERE, NEW[:4], OLD[:4]))


def test_an_operation_that_is_too_long_for_its_mask_gets_no_alias() -> None:
    with ledger() as opened:
        assert not SharedOperationAliases(opened, DIGESTS).add(OLD, OperationId(b"x" * 65), HERE)
