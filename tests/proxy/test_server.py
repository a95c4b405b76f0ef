import asyncio
import logging
import math
import struct
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.relay_dialogue import (
    LOGIN,
    OPERATION,
    close_session,
    execute,
    execute_and_wait,
    executed,
    fetch,
    get_status,
    open_session,
    reply,
    session_opened,
    status_is,
)
from support.scripted_session import PATIENCE_S, Peer, Rewriter, eventually, stage

from proxy.frontend import graceful_close
from proxy.operations.dispatch import Dispatch, OutcomeKind
from proxy.operations.query import FailureKind, Query, QueryFailed, ResultColumn, Rows
from proxy.operations.session_port import SessionOpening
from proxy.statements.statement_class import StatementClass
from proxy.wire.hs2.calls import CONFIGURATION_ENTRIES_MAX, OperationState, encode_open_session
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

FINISHED = OperationState.FINISHED
# With a fraction of a second, which the server is not told of.
QUERY = Query("SELECT 1 AS one", rows_max=10, bytes_max=10_000, deadline_s=PATIENCE_S + 0.5)


# --- ends


async def test_a_client_that_leaves_closes_its_backend_connection() -> None:
    async with stage() as on:
        client, backend = await on.log_in()
        client.close()
        assert await backend.rest() == b""
        await on.all_gone()


async def test_half_a_frame_and_leave_leaves_nothing_behind() -> None:
    async with stage() as on:
        client, backend = await on.log_in()
        client.send(open_session()[:10])
        client.close()
        assert await backend.rest() == b""
        await on.all_gone()


async def test_a_backend_that_dies_mid_fetch_closes_the_client_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        half = reply("FetchResults", 2)[:20]
        backend.send(half)
        await client.expect(half)
        backend.writer.transport.abort()
        assert await client.rest() == b""
        await on.all_gone()
    assert any("the backend 127.0.0.1:" in message and "closed" in message for message in caplog.messages)


async def test_the_last_bytes_of_a_backend_that_closes_still_arrive() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        backend.send(reply("FetchResults", 2))
        backend.close()
        assert await client.rest() == reply("FetchResults", 2)


async def test_a_backend_that_is_down_is_named_in_a_sasl_error() -> None:
    async with stage() as on:
        on.stop_backend()
        client = await on.connect()
        client.send(LOGIN)
        answer = await client.rest()
        assert answer[0] == 4
        assert b"cannot reach the backend 127.0.0.1:" in answer
        assert answer.endswith(b"Connection refused")


async def test_garbage_instead_of_sasl_never_reaches_the_backend() -> None:
    async with stage() as on:
        client = await on.connect()
        client.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert b"expected a SASL message" in await client.rest()
        await on.all_gone()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await on.backend()


async def test_a_frame_past_the_limit_closes_only_that_connection() -> None:
    async with stage(request_bytes_max=1000) as on:
        bystander, _ = await on.open_session()
        client, backend = await on.log_in()
        client.send(struct.pack(">I", 1001))
        assert await client.rest() == b""
        assert await backend.rest() == b""
        assert on.proxy.connection_count == 1
        bystander.close()


async def test_a_client_that_says_nothing_is_closed_after_a_while() -> None:
    async with stage(handshake_timeout_s=0.05) as on:
        client = await on.connect()
        assert await client.rest() == b""


async def test_one_client_too_many_is_told_so() -> None:
    async with stage(connections_max=1) as on:
        first, _ = await on.log_in()
        second = await on.connect()
        assert b"serves 1 connections already" in await second.rest()
        first.close()


# --- flow


async def test_a_slow_reader_holds_the_backend_back() -> None:
    async with stage(write_buffer_bytes_max=64 * 1024) as on:
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        body = bytes(1024 * 1024)
        message_bytes = 64 * len(body)
        backend.send(struct.pack(">I", message_bytes))
        sent = await _send_until_stuck(backend, body, 64)
        # What the four socket buffers and the proxy's two take, however large a system makes the former.
        assert sent < 48, "the backend was read although the client reads nothing"
        for _ in range(64 - sent):
            backend.send(body)
        async with asyncio.timeout(20):
            received = 0
            while received < message_bytes + 4:
                received += len(await client.reader.read(1024 * 1024))
        client.close()


async def _send_until_stuck(peer: Peer, body: bytes, times: int) -> int:
    for sent in range(times):
        peer.send(body)
        try:
            async with asyncio.timeout(0.3):
                await peer.writer.drain()
        except TimeoutError:
            return sent + 1
    return times


async def test_pipelined_calls_are_answered_in_order() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2) + get_status(3) + fetch(4))
        await backend.expect(fetch(2) + get_status(3) + fetch(4))
        answers = reply("FetchResults", 2) + status_is(FINISHED, 3) + reply("FetchResults", 4)
        backend.send(answers)
        await client.expect(answers)
        client.close()


async def test_a_finished_status_is_answered_without_the_backend() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(get_status(2))
        await backend.expect(get_status(2))
        backend.send(status_is(FINISHED, 2))
        await client.expect(status_is(FINISHED, 2))
        for seqid in (3, 4):
            client.send(get_status(seqid))
            await client.expect(status_is(FINISHED, seqid))
        client.send(fetch(5))
        await backend.expect(fetch(5))
        client.close()


# --- held statements


def schema(name: str, type_number: int) -> Writer:
    primitive = Writer().struct(1).i32(1, type_number).stop().stop().to_bytes()
    types = Writer().raw(1, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, 1) + primitive).stop().to_bytes()
    column = Writer().binary(1, name.encode()).raw(2, Kind.STRUCT, types).i32(3, 1).stop().to_bytes()
    columns = struct.pack(">Bi", Kind.STRUCT, 1) + column
    return Writer().struct(2).raw(1, Kind.LIST, columns).stop()


def batch(*numbers: int) -> Writer:
    values = struct.pack(f">Bi{len(numbers)}i", Kind.I32, len(numbers), *numbers)
    column = Writer().struct(4).raw(1, Kind.LIST, values).binary(2, b"").stop().stop().to_bytes()
    return Writer().struct(3).raw(3, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, 1) + column).stop()


async def answer_up_to_rows(backend: Peer) -> None:
    """Answer the proxy's own query as one of a column of integers, until its rows are asked for."""
    await answer_one(backend, "ExecuteStatement", Writer().raw(2, Kind.STRUCT, OPERATION))
    await answer_one(backend, "GetOperationStatus", Writer().i32(2, FINISHED))
    await answer_one(backend, "GetResultSetMetadata", schema("one", 3))


async def answer_one(backend: Peer, name: str, fields: Writer | None = None, status: int = 0) -> bytes:
    """Answer the proxy's own next call, which has to be of that name."""
    raw = await backend.read_frame()
    header = read_header(raw)
    assert header.name == name
    backend.send(reply(name, header.seqid, fields, status))
    return raw


async def answer_query(backend: Peer, *numbers: int) -> bytes:
    raw = await answer_one(backend, "ExecuteStatement", Writer().raw(2, Kind.STRUCT, OPERATION))
    await answer_one(backend, "GetOperationStatus", Writer().i32(2, OperationState.RUNNING))
    await answer_one(backend, "GetOperationStatus", Writer().i32(2, FINISHED))
    await answer_one(backend, "GetResultSetMetadata", schema("one", 3))
    if numbers:
        await answer_one(backend, "FetchResults", batch(*numbers))
    await answer_one(backend, "FetchResults", batch())
    await answer_one(backend, "CloseOperation")
    return raw


async def test_queries_run_in_the_clients_session_while_its_statement_is_held() -> None:
    rewriter = Rewriter("SELECT 2", (QUERY, QUERY))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        ours = await answer_query(backend, 1, 2, 3)
        await answer_query(backend)
        await backend.expect(execute("SELECT 2", 2))
        backend.send(executed(2))
        await client.expect(executed(2))
        client.close()
    first, second = rewriter.results
    assert isinstance(first, Rows)
    assert isinstance(second, Rows)
    assert first.columns == (ResultColumn("one", "int"),)
    assert (first.rows, second.rows) == (((1,), (2,), (3,)), ())
    assert QUERY.sql.encode() in ours
    # The timeout that the server is asked to keep, rounded up: the last field before two ends of structs.
    assert ours.endswith(struct.pack(">q", math.ceil(QUERY.deadline_s)) + b"\0\0")


async def test_a_query_that_is_rejected_leaves_the_connection_usable() -> None:
    rewriter = Rewriter("SELECT 2", (QUERY,))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_one(backend, "ExecuteStatement", Writer().raw(2, Kind.STRUCT, OPERATION))
        failed = Writer().i32(2, OperationState.ERROR).binary(3, b"42703").binary(5, b"no nope\n\tat Some.scala")
        await answer_one(backend, "GetOperationStatus", failed)
        await answer_one(backend, "CloseOperation")
        await backend.expect(execute("SELECT 2", 2))
        client.close()
    (result,) = rewriter.results
    assert isinstance(result, QueryFailed)
    assert (result.kind, result.message) == (FailureKind.REJECTED, "no nope (SQLSTATE 42703)")


@pytest.mark.parametrize(
    ("query", "state", "kind"),
    [
        (QUERY, OperationState.TIMEDOUT, FailureKind.DEADLINE),
        (Query("SELECT 1", 10, 10_000, deadline_s=0.0), OperationState.RUNNING, FailureKind.DEADLINE),
        (QUERY, OperationState.CANCELED, FailureKind.REJECTED),
    ],
)
async def test_a_query_that_does_not_finish_is_closed(
    query: Query, state: OperationState, kind: FailureKind
) -> None:
    rewriter = Rewriter(queries=(query,))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_one(backend, "ExecuteStatement", Writer().raw(2, Kind.STRUCT, OPERATION))
        await answer_one(backend, "GetOperationStatus", Writer().i32(2, state))
        await answer_one(backend, "CloseOperation")
        await backend.expect(execute("SELECT 1", 2))
        client.close()
    (result,) = rewriter.results
    assert isinstance(result, QueryFailed)
    assert result.kind is kind


@pytest.mark.parametrize(
    ("rows_max", "bytes_max", "kind"),
    [(2, 10_000, FailureKind.TOO_MANY_ROWS), (10, 20, FailureKind.TOO_MANY_BYTES)],
)
async def test_a_result_past_its_bounds_is_thrown_away(rows_max: int, bytes_max: int, kind: FailureKind) -> None:
    rewriter = Rewriter(queries=(Query("SELECT 1", rows_max, bytes_max, PATIENCE_S),))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_up_to_rows(backend)
        await answer_one(backend, "FetchResults", batch(1, 2, 3))
        await answer_one(backend, "CloseOperation")
        await backend.expect(execute("SELECT 1", 2))
        client.close()
    (result,) = rewriter.results
    assert isinstance(result, QueryFailed)
    assert result.kind is kind


NO_COLUMNS = Writer().struct(3).raw(3, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, 0)).stop()


@pytest.mark.parametrize("before", [[], [batch(1, 2)]])
async def test_a_batch_without_the_columns_of_the_answer_is_not_its_end(before: list[Writer]) -> None:
    rewriter = Rewriter(queries=(QUERY,))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_up_to_rows(backend)
        for some in (*before, NO_COLUMNS):
            await answer_one(backend, "FetchResults", some)
        await answer_one(backend, "CloseOperation")
        await backend.expect(execute("SELECT 1", 2))
        client.close()
    (result,) = rewriter.results
    assert isinstance(result, QueryFailed)
    assert result.kind is FailureKind.UNREADABLE


OUR_OPERATION = Writer().raw(2, Kind.STRUCT, OPERATION)


async def expect_last_words(backend: Peer) -> None:
    """The proxy ends its own operation, and says no more."""
    for name in ("CancelOperation", "CloseOperation"):
        raw = await backend.read_frame()
        assert read_header(raw).name == name
        assert raw.count(OPERATION) == 1
    assert await backend.rest() == b""


async def test_a_client_that_leaves_while_its_statement_is_held_ends_the_query_that_it_waited_for() -> None:
    rewriter = Rewriter("SELECT 2", (QUERY,))
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_one(backend, "ExecuteStatement", OUR_OPERATION)
        assert read_header(await backend.read_frame()).name == "GetOperationStatus"
        client.close()
        # The backend reads on only once it has answered.
        await on.all_gone()
        backend.send(reply("GetOperationStatus", 2))
        await expect_last_words(backend)
        backend.close()
        await eventually(lambda: not on.proxy.closing_connection_count)
    assert rewriter.results == []


async def test_a_query_is_ended_even_if_its_client_left_before_it_had_an_operation() -> None:
    async with stage(Rewriter("SELECT 2", (QUERY,))) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        raw = await backend.read_frame()
        client.close()
        await on.all_gone()
        backend.send(reply("ExecuteStatement", read_header(raw).seqid, OUR_OPERATION))
        await expect_last_words(backend)


async def test_a_backend_that_never_answers_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_close, "GRACEFUL_CLOSE_S", 0.1)
    async with stage(Rewriter("SELECT 2", (QUERY,))) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await backend.read_frame()
        client.close()
        assert await backend.rest() == b""
        await eventually(lambda: not on.proxy.closing_connection_count)


async def test_the_proxy_ends_its_queries_before_it_goes() -> None:
    async with stage(Rewriter("SELECT 2", (QUERY,))) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await answer_one(backend, "ExecuteStatement", OUR_OPERATION)
        await backend.read_frame()
        closing = asyncio.create_task(on.proxy.close())
        await expect_last_words(backend)
        assert not closing.done()
        backend.close()
        await closing
        assert b"Starpruner is stopping" in await client.rest()


async def test_a_rewrite_that_fails_sends_the_original_and_logs_none_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stage(Rewriter(fails=True)) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 'private'", 2))
        await backend.expect(execute("SELECT 'private'", 2))
        client.close()
    assert "RuntimeError in Rewriter.rewrite" in caplog.text
    assert "private" not in caplog.text


@pytest.mark.parametrize("version", [4, 9])
async def test_sessions_before_protocol_v6_are_not_offered_to_rewrite(version: int) -> None:
    async with stage(Rewriter("SELECT 2")) as on:
        client, backend = await on.open_session(version)
        client.send(execute("SELECT 1", 2))
        await backend.expect(execute("SELECT 1" if version == 4 else "SELECT 2", 2))
        client.close()


async def test_a_session_used_from_another_connection_is_known_until_it_is_closed() -> None:
    async with stage(Rewriter("SELECT 2")) as on:
        first, first_backend = await on.open_session()
        second, second_backend = await on.log_in()
        second.send(execute("SELECT 1", 2))
        await second_backend.expect(execute("SELECT 2", 2))
        first.send(close_session(3))
        await first_backend.expect(close_session(3))
        second.send(execute("SELECT 1", 4))
        await second_backend.expect(execute("SELECT 1", 4))
        first.close()
        second.close()


async def test_a_session_is_opened_with_its_settings_and_told_its_end() -> None:
    seen: list[Mapping[str, str]] = []
    rewriter = Rewriter()

    def open_port(opened: SessionOpening) -> Rewriter:
        seen.append(opened.configuration)
        return rewriter

    async with stage(open_port=open_port) as on:
        client, backend = await on.log_in()
        opening = frame(encode_open_session(1, "user", "password", {"spark.sql.session.timeZone": "Asia/Tokyo"}))
        client.send(opening)
        await backend.expect(opening)
        backend.send(session_opened())
        await client.expect(session_opened())
        assert (seen, rewriter.has_closed) == ([{"spark.sql.session.timeZone": "Asia/Tokyo"}], False)
        client.close()
        await on.all_gone()
        assert rewriter.has_closed


async def test_lessons_count_for_the_login_whatever_name_the_call_has() -> None:
    opened: list[SessionOpening] = []

    def open_port(opening: SessionOpening) -> Rewriter:
        opened.append(opening)
        return Rewriter()

    async with stage(open_port=open_port) as on:
        for name in ("anybody", "anybody else"):
            client, backend = await on.log_in()
            opening = frame(encode_open_session(1, name, "password", {}))
            client.send(opening)
            await backend.expect(opening)
            backend.send(session_opened())
            await client.expect(session_opened())
    one, other = opened
    assert one.owner != other.owner, "a server that asks for no login goes by the name"
    assert (one.who, one.login) == (other.who, other.login)
    assert one.login


async def test_a_session_with_too_many_settings_is_not_offered_to_rewrite() -> None:
    async with stage(Rewriter("SELECT 2")) as on:
        client, backend = await on.log_in()
        settings = {f"set:hiveconf:{number}": "x" for number in range(CONFIGURATION_ENTRIES_MAX + 1)}
        opening = frame(encode_open_session(1, "user", "password", settings))
        client.send(opening)
        await backend.expect(opening)
        backend.send(session_opened())
        await client.expect(session_opened())
        client.send(execute("SELECT 1", 2))
        await backend.expect(execute("SELECT 1", 2))
        client.close()


async def test_a_statement_that_fails_falls_back_and_its_session_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rewriter = Rewriter("SELECT 'private'", may_fall_back=True)
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute_and_wait("SELECT 1", 2))
        await backend.expect(execute_and_wait("SELECT 'private'", 2))
        backend.send(reply("ExecuteStatement", 2, status=3, message="no 'private'"))
        await backend.expect(execute_and_wait("SELECT 1", 2))
        backend.send(executed(2))
        await client.expect(executed(2))
        client.close()
    assert [(outcome.kind, outcome.message) for outcome in rewriter.outcomes] == [
        (OutcomeKind.RECOVERED, "no 'private'")
    ]
    assert "failed rewritten, and finished as the original" in caplog.text
    assert "private" not in caplog.text


async def test_statements_end_with_the_connection_that_opened_their_session() -> None:
    rewriter = Rewriter()
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        await backend.expect(execute("SELECT 1", 2))
        backend.send(executed(2))
        await client.expect(executed(2))
        assert rewriter.outcomes == []
        client.close()
        await on.all_gone()
    assert [outcome.kind for outcome in rewriter.outcomes] == [OutcomeKind.UNKNOWN]


async def test_whoever_cannot_be_told_a_statements_end_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with stage(Rewriter("SELECT 2", fails_at_the_end=True)) as on:
        client, backend = await on.open_session()
        client.send(execute_and_wait("SELECT 'private'", 2))
        await backend.expect(execute_and_wait("SELECT 2", 2))
        backend.send(executed(2))
        await client.expect(executed(2))
        client.send(fetch(3))
        await backend.expect(fetch(3))
        client.close()
    assert "noting a statement's end failed with RuntimeError" in caplog.text
    assert "private" not in caplog.text


# --- how many queries of ours run at once

COSTLY = replace(QUERY, needs_slot=True)


async def test_a_costly_query_waits_for_a_slot_and_others_do_not() -> None:
    hurried = replace(COSTLY, deadline_s=0.5)
    first, second = Rewriter(queries=(COSTLY,)), Rewriter(queries=(hurried, QUERY))
    rewriters = iter((first, second))
    async with stage(open_port=lambda _: next(rewriters), key_queries_at_once_max=1) as on:
        one, one_backend = await on.open_session()
        one.send(execute("SELECT 1", 2))
        await one_backend.read_frame()
        # The stand-in's sessions have one handle, so the second takes its place.
        two, two_backend = await on.open_session()
        two.send(execute("SELECT 2", 2))
        # The slot is not free within the deadline, and what needs none is asked then.
        await answer_query(two_backend, 1)
        await two_backend.expect(execute("SELECT 2", 2))
        one.close()
        two.close()
    busy, answered = second.results
    assert isinstance(busy, QueryFailed)
    assert (busy.kind, isinstance(answered, Rows)) == (FailureKind.BUSY, True)
    assert busy.seconds >= hurried.deadline_s


async def test_a_slot_is_free_again_when_its_query_has_ended_or_its_client_has_gone() -> None:
    rewriter = Rewriter(queries=(COSTLY,))
    async with stage(rewriter, key_queries_at_once_max=1) as on:
        for leaves in (True, False, False):
            client, backend = await on.open_session()
            client.send(execute("SELECT 1", 2))
            if leaves:
                await backend.read_frame()
            else:
                await answer_query(backend, 1)
                await backend.expect(execute("SELECT 1", 2))
            client.close()
    assert [type(result) for result in rewriter.results] == [Rows, Rows]


async def test_an_original_that_is_sent_since_the_rewritten_text_is_too_long_is_told_as_such() -> None:
    rewriter = Rewriter(f"SELECT {'2' * 1000}")
    async with stage(rewriter, request_bytes_max=1000) as on:
        client, backend = await on.open_session()
        client.send(execute_and_wait("SELECT 1", 2))
        await backend.expect(execute_and_wait("SELECT 1", 2))
        backend.send(executed(2))
        await client.expect(executed(2))
        client.close()
        await eventually(lambda: bool(rewriter.outcomes))
    assert rewriter.outcomes[0].original_instead


# --- sessions that were opened elsewhere


async def test_statements_of_a_session_that_was_opened_elsewhere_pass_and_its_writes_are_known() -> None:
    known: list[str] = []

    class Noting(Rewriter):
        def forward_unchanged(self, statement: StatementClass) -> Dispatch:
            known.append(statement.text)
            return super().forward_unchanged(statement)

    async with stage(Noting("SELECT 2")) as on:
        client, backend = await on.log_in()
        client.send(execute("INSERT INTO t SELECT 1", 2))
        await backend.expect(execute("INSERT INTO t SELECT 1", 2))
        assert known == ["INSERT INTO t SELECT 1"]
        client.close()


async def test_a_backend_that_dies_during_a_call_ends_the_connection_as_it_does_directly() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(execute_and_wait("SELECT 1", 5))
        await backend.expect(execute_and_wait("SELECT 1", 5))
        backend.writer.transport.abort()
        assert await client.rest() == b""
        await on.all_gone()
