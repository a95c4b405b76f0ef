"""Sessions whose statements come to two processes: neither rewrites them any more."""

import asyncio

from support.played_calls import passes, reaches
from support.relay_dialogue import close_session, execute, executed, get_status, status_is
from support.scripted_session import Rewriter, Stage, eventually, stage
from support.session_handles import Elsewhere, session_id

from proxy.access.handle_owners import Digests, HandleKind, HandleOwner, HandleOwners, LocalHandleOwners
from proxy.frontend.process_scope import ProcessScope
from proxy.frontend.session_registry import SETTLING_S
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.statements.statement_class import StatementClass
from proxy.wire.hs2.calls import OperationState


async def test_a_session_that_roams_is_rewritten_no_longer() -> None:
    handles, rewriter = Elsewhere(), Rewriter("SELECT 2")
    async with stage(rewriter, process=ProcessScope(handles)) as on:
        client, backend = await on.open_session()
        await passes(client, backend, execute("SELECT 1", 2), executed(2), execute("SELECT 2", 2))
        assert not rewriter.is_used_elsewhere
        handles.roaming.add(session_id())
        await reaches(client, backend, execute("SELECT 1", 3))
        assert rewriter.is_used_elsewhere, "its settings are not known any more"


async def test_a_session_that_begins_to_roam_while_its_statement_is_decided_about_is_not_rewritten() -> None:
    handles = Elsewhere()

    class Roaming(Rewriter):
        def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> object:  # type: ignore[override]
            handles.roaming.add(session_id())
            return super().rewrite(statement)

    rewriter = Roaming("SELECT 2")
    async with stage(rewriter, process=ProcessScope(handles)) as on:
        client, backend = await on.open_session()
        await reaches(client, backend, execute("SELECT 1", 2))
        client.close()
        await on.all_gone()
    assert rewriter.is_used_elsewhere, "what it writes was counted before"
    assert [outcome.kind for outcome in rewriter.outcomes] == [OutcomeKind.UNKNOWN], (
        "who decided is told all the same"
    )


async def test_the_answer_of_a_statement_whose_session_roams_is_dropped_and_it_falls_back() -> None:
    """What another process has let pass may have changed the session."""
    handles = Elsewhere()
    async with stage(Rewriter("SELECT 2", may_fall_back=True), process=ProcessScope(handles)) as on:
        client, backend = await on.open_session()
        await passes(client, backend, execute("SELECT 1", 2), executed(2), execute("SELECT 2", 2))
        handles.roaming.add(session_id())
        await reaches(client, backend, get_status(3))
        backend.send(status_is(OperationState.FINISHED, 3))
        await backend.expect(execute("SELECT 1", 2))


async def test_the_first_statement_of_another_processs_session_waits_and_goes_as_the_original() -> None:
    handles = Elsewhere()
    handles.theirs.add(session_id())
    async with stage(Rewriter("SELECT 2"), process=ProcessScope(handles)) as on:
        client, backend = await on.log_in()
        started = asyncio.get_running_loop().time()
        await reaches(client, backend, execute("SELECT 1", 2))
        assert asyncio.get_running_loop().time() - started >= SETTLING_S
        await reaches(client, backend, close_session(3))


async def test_a_client_that_leaves_while_its_statement_waits_leaves_nothing_behind() -> None:
    handles = Elsewhere()
    handles.theirs.add(session_id())
    async with stage(Rewriter("SELECT 2"), process=ProcessScope(handles)) as on:
        client, backend = await on.log_in()
        client.send(execute("SELECT 1", 2))
        client.close()
        assert await backend.rest() == b""
        await on.all_gone()


def swept(on: Stage, rewriter: Rewriter) -> bool:
    """Whether the session is closed by a look at those that have ended elsewhere."""
    on.proxy.drop_sessions_ended_elsewhere()
    return rewriter.has_closed


async def test_a_session_that_has_ended_in_its_own_process_ends_here() -> None:
    handles: HandleOwners = LocalHandleOwners()
    rewriter = Rewriter()
    async with stage(rewriter, process=ProcessScope(handles)) as on:
        client, backend = await on.log_in()
        await passes(client, backend, execute("SELECT 1", 2), executed(2))
        assert not swept(on, rewriter), "nobody knows of it"
        handles.handle_opened(
            HandleKind.SESSION, session_id(), HandleOwner(Digests.new().user_digest(b"user"), "spark")
        )
        assert not swept(on, rewriter)
        handles.handles_closed([session_id()])
        assert swept(on, rewriter)


async def test_a_statement_on_a_connection_that_is_not_followed_is_noted_as_one_whose_end_is_not_seen() -> None:
    rewriter = Rewriter("SELECT 2")
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        backend.send(b"\0\0\0\5hello")
        await client.expect(b"\0\0\0\5hello")
        await reaches(client, backend, execute("SELECT 1", 2))
        await eventually(lambda: [outcome.kind for outcome in rewriter.outcomes] == [OutcomeKind.UNKNOWN])
