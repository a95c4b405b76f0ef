"""Clients over HTTP before a backend over HTTP: what passes, what is decided on the way, and what goes wrong."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from threading import Event
from typing import Any

import aiohttp
import pytest
from support.http_stage import (
    CHUNKED_HEAD,
    PATH,
    Post,
    Stage,
    basic,
    body_of,
    chunk,
    chunked,
    message,
    ok,
    request,
    response,
    stage,
)
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    close_session,
    execute,
    executed,
    fetch,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)
from support.scripted_session import PATIENCE_S, Rewriter, eventually
from support.stop_requests import requested

from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.memory_shares import AMPLE
from proxy.frontend import memory_gate
from proxy.http.http_upstream import HttpUpstreams
from proxy.operations.dispatch import Dispatch, OutcomeKind, Premises, Refusal
from proxy.operations.key_check import ASK_FIRST, CheckVerdict, KeyCheck, KeyTerms
from proxy.operations.query import Query, QueryFailed, ask_driver
from proxy.operations.reply_tracker import WATCHED_REPLY_BYTES_MAX
from proxy.operations.session_port import SessionOpening
from proxy.statements.statement_class import StatementClass
from proxy.upstream.dialer import Dialer
from proxy.wire.hs2.calls import OperationState, encode_failure, encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

FINISHED, RUNNING, ERROR = OperationState.FINISHED, OperationState.RUNNING, OperationState.ERROR
# There is room for one of them in 100 KB.
LONG_CALL = message(execute(f"SELECT 1 /* {'x' * 20_000} */"))
QUERY = Query("SELECT 1 AS one", rows_max=10, bytes_max=10_000, deadline_s=PATIENCE_S)
NEGOTIATE = {"Authorization": "Negotiate YIIabc"}


def kinds(rewriter: Rewriter) -> list[OutcomeKind]:
    return [outcome.kind for outcome in rewriter.outcomes]


async def answer(on: Stage, call: bytes, reply: bytes) -> None:
    """The backend's next request has to be this call."""
    await on.backend.answer(message(call), message(reply))


async def passes(
    on: Stage, call: bytes, reply: bytes, headers: dict[str, str] | None = None, *, sent: bytes = b""
) -> None:
    """A call, which the backend gets as it is or as `sent`, and its reply."""
    post = on.start(message(call), headers)
    await answer(on, sent or call, reply)
    assert await body_of(post) == message(reply)


async def open_one(on: Stage, headers: dict[str, str] | None = None) -> None:
    await passes(on, open_session(), session_opened(), headers)


@asynccontextmanager
async def opened(rewriter: Rewriter | None = None, **keys: Any) -> AsyncIterator[Stage]:
    """A stage with a session."""
    async with stage(rewriter, **keys) as on:
        await open_one(on)
        yield on


# --- what passes


async def test_a_call_and_its_reply_pass_with_their_headers_and_cookies() -> None:
    async with stage() as on:
        headers = {**basic(), "Cookie": "hive.server2.auth=cu=user&s=x==", "X-XSRF-HEADER": "true"}
        post = on.start(message(open_session()), headers, f"{PATH}?a=%2Fb")
        asked = await on.backend.next()
        asked.answer(
            ok(message(session_opened()), "Set-Cookie: a=1", "Set-Cookie: b=2; HttpOnly", "Server: Jetty")
        )
        status, body, got = await post
    assert (status, body) == (200, message(session_opened()))
    assert asked.line == f"POST {PATH}?a=%2Fb HTTP/1.1"
    assert asked.body == message(open_session())
    assert {name: asked.header(name) for name in headers} == {name: [value] for name, value in headers.items()}
    # A reply is read as it stands.
    assert asked.header("Accept-Encoding") == ["identity"]
    assert got.headers.getall("Set-Cookie") == ["a=1", "b=2; HttpOnly"]
    assert got.headers["Server"] == "Jetty"


@pytest.mark.parametrize("chunk_bytes", [1, 7, 4096, 10**9])
async def test_a_reply_is_the_same_in_whatever_pieces_it_comes(chunk_bytes: int) -> None:
    rows = message(reply("FetchResults", 2, Writer().binary(9, bytes(20_000))))
    async with opened() as on:
        post = on.start(message(fetch(2)))
        asked = await on.backend.next()
        raw = chunked(rows, chunk_bytes)
        for start in range(0, len(raw), max(1, len(raw) // 50)):
            asked.answer(raw[start : start + max(1, len(raw) // 50)])
            await asyncio.sleep(0)
        assert await body_of(post) == rows
        post = on.start(message(get_status(3)))
        asked = await on.backend.next()
        asked.answer(chunked(message(status_is(RUNNING, 3)), chunk_bytes))
        assert await body_of(post) == message(status_is(RUNNING, 3))


@pytest.mark.parametrize("status", [401, 403, 413, 500, 503])
async def test_the_backends_own_http_errors_reach_the_client(status: int) -> None:
    async with opened() as on:
        for call in (open_session(2), execute("SELECT 1", 3), get_status(4), fetch(5)):
            post = on.start(message(call))
            (await on.backend.next()).answer(response(status, b"Authentication Error", "X-Why: because"))
            got, body, answer = await post
            assert (got, body, answer.headers["X-Why"]) == (status, b"Authentication Error", "because")


async def test_a_redirection_is_the_clients_to_follow() -> None:
    async with stage() as on:
        post = asyncio.create_task(
            on._session.post(on.url + PATH, data=message(fetch(2)), allow_redirects=False)  # noqa: SLF001
        )
        (await on.backend.next()).answer(response(302, b"", "Location: http://elsewhere.invalid/"))
        async with await post as got:
            assert (got.status, got.headers["Location"]) == (302, "http://elsewhere.invalid/")


async def test_a_body_that_the_backend_has_encoded_passes_as_it_is() -> None:
    async with stage() as on:
        client = await on.connect()
        client.send(request(message(get_status(2)), "Connection: close"))
        (await on.backend.next()).answer(ok(b"\x1f\x8b not really", "Content-Encoding: gzip"))
        answer = await client.rest()
    assert b"\r\nContent-Encoding: gzip\r\n" in answer
    assert answer.endswith(b"\r\n\r\n\x1f\x8b not really")


async def test_only_the_configured_path_is_served_and_only_by_post() -> None:
    async with stage() as on:
        assert (await on.post(b"", path="/elsewhere"))[0] == 404
        assert (await on.post(b"", path=f"{PATH}x"))[0] == 404
        async with on._session.get(on.url + PATH) as got:  # noqa: SLF001
            assert (got.status, got.headers["Allow"]) == (405, "POST")
        assert on.backend.asked.empty()


@pytest.mark.parametrize("body", [b"", b"GET", message(fetch(2))[:-1], message(fetch(2)) + b"x", bytes(100)])
async def test_what_is_not_one_message_is_refused_and_never_sent(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage() as on:
        status, sentence, _ = await on.post(body)
        assert status == 400
        assert sentence.endswith(b"\n")
        assert on.backend.asked.empty()
    assert "a request from 127.0.0.1" in caplog.text


async def test_a_request_past_the_limit_is_refused() -> None:
    async with stage(request_bytes_max=2000) as on:
        assert (await on.post(bytes(2001)))[0] == 413
        assert on.backend.asked.empty()


async def test_a_long_statement_passes_whole() -> None:
    sql = "SELECT '" + "x" * 3_000_000 + "'"
    async with opened() as on:
        await passes(on, execute(sql, 2), executed(2))


# --- statements


async def test_a_text_past_the_request_limit_is_refused_where_the_original_is() -> None:
    class Limited(Rewriter):
        async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
            return replace(await super().rewrite(statement), original_refusal=Refusal("no", "42ZSL"))

    rewriter = Limited("x" * 2000)
    async with opened(rewriter, request_bytes_max=2000) as on:
        status, body, _ = await on.post(message(execute("SELECT 1", 3)))
        assert (status, body) == (200, encode_failure("ExecuteStatement", 3, "no", "42ZSL"))
        assert on.backend.asked.empty()
    assert [outcome.kind for outcome in rewriter.outcomes] == [OutcomeKind.REFUSED]


async def test_a_statement_is_rewritten_and_key_queries_go_with_the_clients_own_headers() -> None:
    rewriter = Rewriter("SELECT 2", (QUERY,))
    async with opened(rewriter) as on:
        cookie = "hive.server2.auth=cu=user&rn=1&s=x"
        headers = {**basic(), "Cookie": cookie}
        post = on.start(message(execute("SELECT 1", 2)), headers)
        ours = await on.backend.next()
        assert QUERY.sql.encode() in ours.body
        assert (ours.header("Authorization"), ours.header("Cookie")) == (
            [basic()["Authorization"]],
            [cookie],
        )
        ours.answer(ok(message(reply("ExecuteStatement", read_header(ours.body).seqid, status=3, message="no"))))
        await answer(on, execute("SELECT 2", 2), executed(2))
        assert await body_of(post) == message(executed(2))
    assert isinstance(rewriter.results[0], QueryFailed)


@pytest.mark.parametrize("verdict", [CheckVerdict.HELD, CheckVerdict.CHANGED])
async def test_remembered_keys_are_checked_and_work_begun_while_a_statement_runs(verdict: CheckVerdict) -> None:
    terms, begun = list[tuple[bool, float | None]](), Event()

    async def asked_again() -> CheckVerdict:
        await ask_driver(QUERY)
        return verdict

    async def work() -> None:
        begun.set()

    class Remembering(Rewriter):
        async def rewrite(self, statement: StatementClass, keys: KeyTerms = ASK_FIRST) -> Dispatch:
            terms.append((keys.may_be_checked, keys.asked_since))
            dispatch = replace(await super().rewrite(statement, keys), beside=work)
            return replace(dispatch, check=KeyCheck(asked_again, 7.0, PATIENCE_S) if keys.may_be_checked else None)

    async with opened(Remembering("SELECT 2", may_fall_back=True)) as on:
        post = on.start(message(execute("SELECT 1 FROM f JOIN d", 2)))
        requests = [await on.backend.next(), await on.backend.next()]
        ours, theirs = sorted(requests, key=lambda asked: QUERY.sql.encode() not in asked.body)
        assert theirs.body == message(execute("SELECT 2", 2))
        theirs.answer(ok(message(executed(2))))
        await eventually(begun.is_set)
        assert not post.done()
        ours.answer(ok(message(reply("ExecuteStatement", read_header(ours.body).seqid, status=3, message="no"))))
        if verdict is CheckVerdict.HELD:
            assert await body_of(post) == message(executed(2))
        else:
            for name in ("CancelOperation", "CloseOperation"):
                await answer(on, operation_call(name, 1, OPERATION), reply(name, 1))
            await answer(on, execute("SELECT 2", 2), executed(2, AGAIN))
            assert await body_of(post) == message(executed(2, AGAIN))
    assert terms == [(True, None), (False, 7.0)][: 1 if verdict is CheckVerdict.HELD else 2]


async def test_a_key_query_that_the_backend_does_not_let_in_leaves_the_statement_as_it_came() -> None:
    async with opened(Rewriter("SELECT 2", (QUERY,))) as on:
        post = on.start(message(execute("SELECT 1", 2)))
        (await on.backend.next()).answer(response(401, b"no"))
        await answer(on, execute("SELECT 1", 2), executed(2))
        assert await body_of(post) == message(executed(2))


@pytest.mark.parametrize(
    ("opened_by", "asked_by"), [(NEGOTIATE, basic()), (basic(), NEGOTIATE), (NEGOTIATE, NEGOTIATE)]
)
async def test_what_kerberos_proves_once_is_not_used_for_queries_of_ours(
    opened_by: dict[str, str], asked_by: dict[str, str]
) -> None:
    async with stage(Rewriter("SELECT 2")) as on:
        await open_one(on, opened_by)
        await passes(on, execute("SELECT 1", 2), executed(2), asked_by)


COOKIE_OF_USER = {"Cookie": "hive.server2.auth=cu=user&rn=1&s=x"}


@pytest.mark.parametrize(
    "headers",
    [
        basic("other"),
        # The server may go by either, and looks at the cookie first.
        {**basic(), "Cookie": "hive.server2.auth=cu=other&rn=1&s=x"},
        {**NEGOTIATE, "Cookie": "hive.server2.auth=cu=other&rn=1&s=x"},
    ],
    ids=["name", "cookie beside the name", "kerberos"],
)
async def test_a_session_of_another_user_is_one_that_nobody_has(headers: dict[str, str]) -> None:
    async with opened(Rewriter("SELECT 2")) as on:
        post = on.start(message(execute("SELECT 1", 2)), headers)
        asked = await on.backend.next()
        assert len(asked.body) == len(message(execute("SELECT 1", 2)))
        assert asked.body != message(execute("SELECT 1", 2))
        asked.answer(ok(message(reply("ExecuteStatement", 2, status=3, message="no such session"))))
        assert b"no such session" in await body_of(post)


async def test_a_session_is_used_with_the_cookie_of_its_user_alone() -> None:
    async with opened(Rewriter("SELECT 2")) as on:
        await passes(on, execute("SELECT 1", 2), executed(2), COOKIE_OF_USER, sent=execute("SELECT 2", 2))


async def test_a_session_that_was_opened_elsewhere_is_not_rewritten() -> None:
    async with stage(Rewriter("SELECT 2")) as on:
        await passes(on, execute("SELECT 1", 2), executed(2))


async def test_lessons_count_for_the_login_and_lists_for_what_it_alone_may_see() -> None:
    """Whom a session belongs to: tests/proxy/upstream/test_http_headers.py has the rules."""
    openings: list[SessionOpening] = []

    def open_port(opening: SessionOpening) -> Rewriter:
        openings.append(opening)
        return Rewriter()

    async with stage(open_port=open_port) as on:
        for headers in ({}, {}, {"X-Any": "1"}, {"Cookie": "hive.server2.auth=x"}):
            await open_one(on, {**basic(), **headers})
    plain, again, with_a_header, with_a_cookie = openings
    assert plain.owner == again.owner != with_a_header.owner, "the server may tell them apart"
    assert (plain.client, plain.who, plain.login) == ("127.0.0.1", with_a_header.who, with_a_header.login)
    assert with_a_cookie.owner not in (plain.owner, with_a_header.owner)
    assert with_a_cookie.login == "", "the cookie may be another user's"


def test_a_session_for_another_user_is_none_that_the_login_can_open() -> None:
    backends = BackendPool([PoolMember(Address("spark", 1))], lambda: 0.0)
    (backend,) = backends.configured
    upstreams = HttpUpstreams(Dialer(), backends, b"key")
    anna, bob, nobody = (
        upstreams.client(query, list(basic("hue").items()), None).at(backend)
        for query in ("doAs=anna", "doAs=bob", "")
    )
    assert (anna.own_login, nobody.own_login) == ("", "hue")
    assert len({anna.who, bob.who, nobody.who}) == 3


async def test_a_cancel_waits_for_no_statement_that_is_held() -> None:
    async with opened(Rewriter("SELECT 2", (QUERY,))) as on:
        held = on.start(message(execute("SELECT 1", 2)))
        ours = await on.backend.next()
        await passes(on, operation_call("CancelOperation", 3), reply("CancelOperation", 3))
        assert not held.done()
        ours.answer(response(500, b""))
        await answer(on, execute("SELECT 1", 2), executed(2))
        await held


async def test_a_finished_status_is_answered_without_the_backend_until_the_operation_may_have_ended() -> None:
    async with opened() as on:
        await passes(on, get_status(2), status_is(FINISHED, 2))
        status, body, _ = await on.post(message(get_status(3)), {**basic(), "Cookie": "another"})
        assert (status, body) == (200, message(status_is(FINISHED, 3)))
        # Of somebody else nothing is known.
        await passes(on, get_status(4), reply("GetOperationStatus", 4, status=4), basic("other"))
        await passes(on, operation_call("CloseOperation", 5), reply("CloseOperation", 5))
        await passes(on, get_status(6), reply("GetOperationStatus", 6, status=4))


async def test_a_status_that_was_asked_before_a_close_is_not_remembered_behind_it() -> None:
    async with opened() as on:
        status = on.start(message(get_status(2)))
        asked = await on.backend.next()
        await passes(on, operation_call("CloseOperation", 3), reply("CloseOperation", 3))
        asked.answer(ok(message(status_is(FINISHED, 2))))
        await status
        await passes(on, get_status(4), reply("GetOperationStatus", 4, status=4))


# --- statements that fail, or are overtaken: tests/proxy/operations/test_fallback.py has the rules


async def open_and_execute(on: Stage) -> None:
    """A session in which `SELECT 1` runs as the rewriter has it."""
    await open_one(on)
    await passes(on, execute("SELECT 1", 2), executed(2), sent=execute("SELECT 2", 2))


async def ask_of_a_failure(on: Stage) -> Post:
    """The status of that statement, of which the backend tells that it has failed."""
    await open_and_execute(on)
    status = on.start(message(get_status(3)))
    await answer(on, get_status(3), status_is(ERROR, 3, "ours"))
    return status


async def test_a_failure_that_a_status_tells_is_kept_back_and_the_handle_of_the_rerun_put_in_its_place() -> None:
    rewriter = Rewriter("SELECT 2", may_fall_back=True)
    async with stage(rewriter) as on:
        status = await ask_of_a_failure(on)
        await answer(on, execute("SELECT 1", 2), executed(2, AGAIN))
        # Another connection asks meanwhile: it hears of no failure either.
        closing = await on.backend.next()
        assert closing.body == message(operation_call("CloseOperation", 1))
        closing.answer(ok(message(reply("CloseOperation", 1))))
        await answer(on, get_status(3, AGAIN), status_is(FINISHED, 3))
        assert await body_of(status) == message(status_is(FINISHED, 3))
        await passes(on, fetch(4), reply("FetchResults", 4), sent=fetch(4, AGAIN))
    assert kinds(rewriter) == [OutcomeKind.RECOVERED]


async def test_a_statement_that_is_run_again_as_its_client_leaves_is_there_for_who_asks_again() -> None:
    rewriter = Rewriter("SELECT 2", may_fall_back=True)
    async with stage(rewriter) as on:
        status = await ask_of_a_failure(on)
        rerun = await on.backend.next()
        assert rerun.body == message(execute("SELECT 1", 2))
        status.cancel()
        await eventually(lambda: on.proxy.connection_count == 0)
        # Who gave up waiting asks again while it is run again, and after that: its failure is nobody's to hear.
        status = on.start(message(get_status(4)))
        await answer(on, get_status(4), status_is(ERROR, 4, "ours"))
        assert await body_of(status) == message(status_is(RUNNING, 4))
        rerun.answer(ok(message(executed(2, AGAIN))))
        await answer(on, operation_call("CloseOperation", 1), reply("CloseOperation", 1))
        await answer(on, get_status(3, AGAIN), status_is(RUNNING, 3))
        await passes(on, fetch(5), reply("FetchResults", 5), sent=fetch(5, AGAIN))
    assert kinds(rewriter) == [OutcomeKind.RECOVERED]


@pytest.mark.parametrize("length", [10, WATCHED_REPLY_BYTES_MAX + 1], ids=["short", "too long to be kept"])
async def test_rows_of_an_overtaken_statement_are_refused_where_the_second_run_is(length: int) -> None:
    overtaken = Premises(is_session_unchanged=lambda: False)
    async with stage(Rewriter("SELECT 2", may_fall_back=True, premises=overtaken)) as on:
        await open_and_execute(on)
        status = on.start(message(get_status(3)))
        await answer(on, get_status(3), status_is(FINISHED, 3))
        await answer(on, execute("SELECT 1", 2), reply("ExecuteStatement", 2, status=3))
        assert b"40001" in await body_of(status)
        rows = on.start(message(fetch(4)))
        await answer(on, fetch(4), reply("FetchResults", 4, Writer().binary(9, bytes(length))))
        assert b"40001" in await body_of(rows)


# --- what goes wrong


async def test_a_backend_that_closes_before_it_answers_is_a_status_and_no_call_is_made_twice() -> None:
    async with opened(Rewriter("SELECT 2")) as on:
        for call in (execute("SELECT 1", 2), get_status(3), fetch(4), close_session(5)):
            post = on.start(message(call))
            (await on.backend.next()).peer.close()
            status, body, _ = await post
            assert status == 502
            assert b"broke off" in body
        assert on.backend.asked.empty()


@pytest.mark.parametrize("cut", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Le", b"not HTTP at all\r\n\r\n"])
async def test_half_a_head_is_a_status(cut: bytes) -> None:
    async with stage() as on:
        post = on.start(message(fetch(2)))
        asked = await on.backend.next()
        asked.answer(cut)
        asked.peer.close()
        assert (await post)[0] == 502


@pytest.mark.parametrize(
    "cut", [ok(bytes(100))[:-50], CHUNKED_HEAD + chunk(bytes(50)), CHUNKED_HEAD + chunk(bytes(50))[:-20]]
)
async def test_a_reply_that_is_cut_off_is_cut_off_for_the_client(
    cut: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage() as on:
        posting = asyncio.create_task(on._session.post(on.url + PATH, data=message(fetch(2)), headers=basic()))  # noqa: SLF001
        asked = await on.backend.next()
        asked.answer(cut)
        # Once it has begun to come, it can be no other answer any more.
        async with asyncio.timeout(PATIENCE_S), await posting as got:
            asked.peer.writer.transport.abort()
            with pytest.raises(aiohttp.ClientError):
                await got.read()
    assert "broke off its answer" in caplog.text


async def test_a_small_reply_that_is_cut_off_is_a_status_since_nothing_of_it_was_sent() -> None:
    async with opened() as on:
        post = on.start(message(get_status(2)))
        asked = await on.backend.next()
        asked.answer(ok(message(status_is(RUNNING, 2)))[:-5])
        asked.peer.close()
        assert (await post)[0] == 502


async def test_a_client_that_leaves_takes_its_call_to_the_backend_with_it() -> None:
    async with stage() as on:
        post = on.start(message(fetch(2)))
        asked = await on.backend.next()
        post.cancel()
        await eventually(asked.peer.reader.at_eof)
        await eventually(lambda: on.proxy.connection_count == 0)


async def test_a_query_of_ours_is_ended_though_its_client_has_left() -> None:
    async with opened(Rewriter("SELECT 2", (QUERY,))) as on:
        post = on.start(message(execute("SELECT 1", 2)))
        ours = await on.backend.next()
        post.cancel()
        await eventually(lambda: on.proxy.connection_count == 0)
        named = Writer().raw(2, Kind.STRUCT, OPERATION)
        ours.answer(ok(message(reply("ExecuteStatement", read_header(ours.body).seqid, named))))
        for name in ("CancelOperation", "CloseOperation"):
            asked = await on.backend.next()
            assert read_header(asked.body).name == name
            assert asked.body.count(OPERATION) == 1
            asked.answer(ok(message(reply(name))))
        # The statement itself has never been sent.
        assert on.backend.asked.empty()


async def test_a_statement_that_is_ruled_on_as_its_client_leaves_has_ended_unsent() -> None:
    class Slow(Rewriter):
        async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
            begun.set()
            assert may_end.wait(PATIENCE_S)
            return await super().rewrite(statement)

    begun, may_end, rewriter = Event(), Event(), Slow("SELECT 2")
    async with opened(rewriter) as on:
        post = on.start(message(execute("SET a = 1", 2)))
        await eventually(begun.is_set)
        post.cancel()
        await eventually(lambda: on.proxy.connection_count == 0)
        may_end.set()
        # The session lives on, and is to know that nothing is under way in it.
        await eventually(lambda: len(rewriter.outcomes) > 0)
        assert on.backend.asked.empty()
    assert kinds(rewriter) == [OutcomeKind.NOT_SENT]


async def test_a_slow_reader_holds_the_backend_back() -> None:
    piece = bytes(1024 * 1024)
    async with stage(write_buffer_bytes_max=64 * 1024) as on:
        client = await on.connect()
        client.send(request(message(fetch(2))))
        asked = await on.backend.next()
        asked.answer(CHUNKED_HEAD)
        sent = 0
        with suppress(TimeoutError):
            while sent < 64:
                asked.answer(chunk(piece))
                sent += 1
                async with asyncio.timeout(0.3):
                    await asked.peer.writer.drain()
        # What the sockets' buffers and the proxy's take.
        assert sent < 48
        asked.answer(chunk(b""))
        received = 0
        async with asyncio.timeout(20):
            while received < sent * len(piece):
                received += len(await client.reader.read(1024 * 1024))


async def test_half_a_body_is_given_up_after_a_while() -> None:
    async with stage(body_s=0.05) as on:
        client = await on.connect()
        client.send(request(bytes(100))[:-50])
        async with asyncio.timeout(PATIENCE_S):
            assert (await client.reader.readline()).startswith(b"HTTP/1.1 408")


async def test_a_connection_that_says_nothing_is_closed_after_a_while() -> None:
    async with stage(keep_alive_s=0.05) as on:
        client = await on.connect()
        assert await client.rest() == b""
        half = await on.connect()
        half.send(b"POST /cliservice HTT")
        assert await half.rest() == b""


def chunked_request(body: bytes) -> bytes:
    lines = [f"POST {PATH} HTTP/1.1", "Host: here", "Transfer-Encoding: chunked", "", ""]
    return "\r\n".join(lines).encode() + chunk(body) + chunk(b"")


async def test_one_client_too_many_is_told_so() -> None:
    async with stage(connections_max=1) as on:
        silent = await on.connect()
        await eventually(lambda: on.proxy.connection_count == 1)
        await open_one(on)
        second = await on.connect()
        second.send(request(message(open_session())))
        assert (await second.reader.readline()).split()[1] == b"503"
        assert b"serves 1 connections already" in await second.reader.readuntil(b"later.\n")
        # The first one is served on its own connection still.
        await open_one(on)
        silent.close()


async def test_a_long_call_is_refused_where_memory_is_short_and_a_short_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_gate, "ROOM_WITHIN_S", 0.1)
    async with (
        opened(memory=replace(AMPLE, statement_bytes=100 * 1024)) as on,
        on.proxy.memory.room_for(20 * 1024),
    ):
        status, body, _ = await on.post(LONG_CALL)
        assert status == 503
        assert b"too little memory for this now (memory_bytes_max); try again later" in body
        await passes(on, fetch(2), reply("FetchResults", 2))
        # A call that comes in chunks does not tell its length.
        client = await on.connect()
        client.send(chunked_request(message(fetch(3))))
        await answer(on, fetch(3), reply("FetchResults", 3))
        assert (await client.reader.readline()).split()[1] == b"200"
        assert on.proxy.memory.refused == 1


@pytest.mark.parametrize("size", [30_000, 3_000_000])
async def test_a_call_that_can_never_fit_is_refused_at_once(size: int) -> None:
    async with asyncio.timeout(memory_gate.ROOM_WITHIN_S / 2):
        async with opened(memory=replace(AMPLE, statement_bytes=100 * 1024), request_bytes_max=2_000_000) as on:
            call = message(execute(f"SELECT 1 /* {'x' * size} */"))
            assert (await on.post(call))[0] == 413
            client = await on.connect()
            client.send(chunked_request(call))
            assert (await client.reader.readline()).split()[1] == b"413"
            assert on.proxy.memory.reserved_bytes == 0


async def test_the_room_of_a_call_is_free_again_once_it_has_been_sent() -> None:
    async with opened(memory=replace(AMPLE, statement_bytes=100 * 1024)) as on:
        posts = [on.start(LONG_CALL) for _ in range(3)]
        # None of them has been answered.
        asked = [await on.backend.next() for _ in posts]
        assert on.proxy.memory.reserved_bytes == 0
        for one in asked:
            one.answer(ok(message(executed(1))))
        for post in posts:
            await body_of(post)


async def test_connections_for_one_call_each_leave_none_behind() -> None:
    async with opened() as on:
        for number in range(200):
            await passes(on, fetch(number), reply("FetchResults", number), {**basic(), "Connection": "close"})
        await eventually(lambda: on.proxy.connection_count <= 1)
        # And to the backend they are one connection.
        assert len(on.backend.peers) == 1


# --- who may act for whom


@pytest.mark.parametrize("query", ["a=b&DOAS=admin", "doAs="])
async def test_nobody_acts_for_another_unless_that_is_allowed(query: str) -> None:
    async with stage() as on:
        status, body, _ = await on.post(message(open_session()), path=f"{PATH}?{query}")
        assert status == 403
        assert b"may not act for" in body
        assert on.backend.asked.empty()


async def test_nobody_opens_a_session_for_another_unless_that_is_allowed() -> None:
    opening = encode_open_session(7, "user", "password", {PROXY_USER: "admin"})
    async with stage() as on:
        status, body, _ = await on.post(opening)
        assert status == 200
        assert read_header(body).seqid == 7
        assert b"user 'user' may not act for user 'admin'" in body
        # Whoever the backend knows by a cookie or a ticket may not say by himself who he is.
        for headers in (NEGOTIATE, {**basic(), "Cookie": "hive.server2.auth=cu=other&rn=1"}):
            assert b"may not act for user 'user'" in (await on.post(_opening_for("user"), headers))[1]
        assert on.backend.asked.empty()


async def test_who_is_named_in_the_configuration_acts_for_another_both_ways() -> None:
    opening = _opening_for("admin")
    async with stage(proxy_users={"user": ("admin",)}) as on:
        post = on.start(opening, path=f"{PATH}?doAs=admin")
        await on.backend.answer(opening, message(session_opened()))
        assert await body_of(post) == message(session_opened())


def _opening_for(user: str) -> bytes:
    return encode_open_session(7, "user", "password", {PROXY_USER: user})


# --- the end


async def test_while_draining_open_sessions_go_on_and_new_ones_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with opened() as on:
        post = on.start(message(execute("SELECT 1", 2)))
        asked = await on.backend.next()
        draining = asyncio.create_task(on.proxy.drain(PATIENCE_S, requested()))
        await asyncio.sleep(0.1)
        assert (await on.post(message(open_session(3))))[0] == 503
        asked.answer(ok(message(reply("ExecuteStatement", 2, status=3))))
        await body_of(post)
        async with asyncio.timeout(PATIENCE_S):
            await draining


async def test_a_call_under_way_is_answered_by_an_error_where_the_proxy_closes() -> None:
    async with stage() as on:
        post = on.start(message(get_status(2)))
        asked = await on.backend.next()
        async with asyncio.timeout(PATIENCE_S):
            await on.proxy.close()
        status, body, _ = await post
        assert (status, body) == (503, b"Starpruner is stopping; connect again.\n")
        await eventually(asked.peer.reader.at_eof)
