"""An administrator cancels a statement: on a connection of the proxy's own, and without a second run."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from support import http_stage, scripted_session
from support.http_stage import body_of, message
from support.played_calls import passes, reaches
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    OPERATION,
    SESSION,
    execute,
    execute_and_wait,
    executed,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)
from support.scripted_session import Rewriter

from proxy.frontend.own_session import Access
from proxy.frontend.statement_canceller import StatementCanceller
from proxy.operations.dispatch import Dispatch, OutcomeKind
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.server import Proxy
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.wire.hs2.calls import OperationState

# The id that a scripted session gives each statement.
ID = "-"
BY = "an administrator (root)"
CANCEL, CANCELLED = operation_call("CancelOperation", 1, OPERATION), reply("CancelOperation", 1)
FAILED = status_is(OperationState.ERROR, 3, "Job 7 was cancelled")

# The backend fails the client's statement while the cancel is under way.
Scene = Callable[[Rewriter], Awaitable[bool]]


def begins(proxy: Proxy) -> asyncio.Task[bool]:
    assert proxy.canceller.cancellable() == {ID}
    return asyncio.create_task(proxy.canceller.cancel(ID, BY))


async def over_binary(rewriter: Rewriter) -> bool:
    async with scripted_session.stage(rewriter) as on:
        client, backend = await on.open_session()
        await passes(client, backend, execute("SELECT 1", 2), executed(2), execute("SELECT 2", 2))
        await reaches(client, backend, get_status(3))
        cancel = begins(on.proxy)
        own = await on.backend()
        await own.expect(LOGIN)
        own.send(ACCEPTED)
        await own.expect(CANCEL)
        backend.send(FAILED)
        await client.expect(FAILED)
        own.send(CANCELLED)
        return await cancel


async def over_http(rewriter: Rewriter) -> bool:
    async with http_stage.stage(rewriter) as on:
        for call, sent, answered in (
            (open_session(), open_session(), session_opened()),
            (execute("SELECT 1", 2), execute("SELECT 2", 2), executed(2)),
        ):
            post = on.start(message(call))
            await on.backend.answer(message(sent), message(answered))
            assert await body_of(post) == message(answered)
        status, asked = on.start(message(get_status(3))), await on.backend.next()
        cancel, own = begins(on.proxy), await on.backend.next()
        assert (own.body, own.header("Authorization")) == (message(CANCEL), asked.header("Authorization"))
        asked.answer(http_stage.ok(message(FAILED)))
        assert await body_of(status) == message(FAILED)
        own.answer(http_stage.ok(message(CANCELLED)))
        return await cancel


@pytest.mark.parametrize("scene", [over_binary, over_http])
async def test_a_rewritten_statement_that_fails_by_the_cancel_is_not_run_again(scene: Scene) -> None:
    rewriter = Rewriter("SELECT 2", may_fall_back=True)
    assert await scene(rewriter)
    assert [(each.kind, each.cancelled_by, each.message) for each in rewriter.outcomes] == [
        (OutcomeKind.UNKNOWN, BY, "")
    ]


async def test_a_refused_cancel_leaves_the_statement_running_and_the_next_one_ends_it() -> None:
    rewriter = Rewriter("SELECT 2")
    async with scripted_session.stage(rewriter) as on:
        client, backend = await on.open_session()
        await passes(client, backend, execute("SELECT 1", 2), executed(2), execute("SELECT 2", 2))
        for answer in (reply("CancelOperation", 1, status=3, message="it is busy"), CANCELLED):
            assert rewriter.outcomes == []
            cancel, own = begins(on.proxy), await on.backend()
            own.send(ACCEPTED)
            await own.expect(LOGIN + CANCEL)
            own.send(answer)
            await asyncio.wait([cancel])
            if answer != CANCELLED:
                with pytest.raises(BackendError, match="did not cancel it: it is busy"):
                    cancel.result()
        assert cancel.result()
        assert [each.cancelled_by for each in rewriter.outcomes] == [BY]
        assert not on.proxy.canceller.cancellable()
        canceled = status_is(OperationState.CANCELED, 3)
        await passes(client, backend, get_status(3), canceled)


async def test_what_has_no_operation_yet_or_has_ended_is_not_cancelled() -> None:
    async with scripted_session.stage(Rewriter("SELECT 2", may_fall_back=True)) as on:
        client, backend = await on.open_session()
        for call, sent, then in (
            (execute_and_wait("SELECT 1", 2), execute_and_wait("SELECT 2", 2), executed(2)),
            (execute("SELECT 1", 3), execute("SELECT 2", 3), executed(3)),
        ):
            await reaches(client, backend, call, sent)
            assert not await on.proxy.canceller.cancel(ID, BY)
            backend.send(then)
            await client.expect(then)
        await passes(client, backend, get_status(4), status_is(OperationState.FINISHED, 4))
        assert not await on.proxy.canceller.cancel(ID, BY)


async def test_a_statement_that_ends_while_the_proxy_logs_in_is_sent_no_cancel() -> None:
    rewriter = Rewriter()
    async with scripted_session.stage(rewriter) as on:
        client, backend = await on.open_session()
        await passes(client, backend, execute("SELECT 1", 2), executed(2))
        cancel, own = begins(on.proxy), await on.backend()
        await passes(client, backend, get_status(4), status_is(OperationState.FINISHED, 4))
        own.send(ACCEPTED)
        assert not await cancel
        assert await own.rest() == LOGIN
    assert [(each.kind, each.cancelled_by) for each in rewriter.outcomes] == [(OutcomeKind.FINISHED, "")]


async def test_without_room_at_the_backend_nothing_is_cancelled() -> None:
    statements, running = TrackedStatements(), TrackedStatement(Dispatch("SELECT 1"), SESSION, 0.0, True, None)  # noqa: FBT003
    _ = statements.operation_opened(running, OPERATION, 0.0)
    canceller = StatementCanceller(statements, lambda _: Access(b"", lambda: None), Dialer())
    with pytest.raises(BackendError, match="no room"):
        await canceller.cancel(ID, BY)
    assert (running.cancelled_by, canceller.cancellable()) == ("", frozenset({ID}))
    nobody_knows_how = StatementCanceller(statements, lambda _: None, Dialer())
    assert (await nobody_knows_how.cancel(ID, BY), nobody_knows_how.cancellable()) == (False, frozenset())
