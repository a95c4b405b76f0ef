from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.http.exchange import message_of
from proxy.upstream.http_headers import (
    CallerHeaders,
    basic_authorization,
    forwarded_headers,
    plain_response,
    proxy_users_of,
)
from proxy.wire.hs2.calls import SessionHandle, encode_close_session, encode_execute, encode_open_session
from proxy.wire.thrift.errors import RemoteProtocolError

KEY = b"key"
AUTHORIZATION = ("Authorization", "Basic dXNlcjpwYXNzd29yZA==")
COOKIE = ("Cookie", "hive.server2.auth=cu=user")
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
MESSAGES = (
    encode_open_session(1, "user", "password", {"use:database": "other", "a": "b"}),
    encode_execute(2, SessionHandle(b"\x0c\0\1\0\0"), "SELECT 1", 5),
    encode_close_session(3, SessionHandle(b"\x0c\0\1\0\0")),
)


@given(WORDS.filter(lambda user: ":" not in user), WORDS)
def test_basic_authentication_and_plain_say_the_same(user: str, password: str) -> None:
    response = b"\0".join((b"", user.encode(), password.encode()))
    header = basic_authorization(response)
    assert header is not None
    assert plain_response(header) == response


@pytest.mark.parametrize(
    "response",
    [b"", b"user", b"\0user", b"\0\0password", b"\0us:er\0password", b"admin\0user\0password", b"\0a\0b\0c"],
)
def test_what_basic_authentication_cannot_say_is_not_said(response: bytes) -> None:
    assert basic_authorization(response) is None


@pytest.mark.parametrize(
    "said",
    ["", "Basic", "Basic !!", "Bearer dXNlcjpwdw==", b"user", b":password", b"us\0er:password", b"user:pass\0"],
)
def test_what_plain_cannot_say_is_not_said(said: str | bytes) -> None:
    header = said if isinstance(said, str) else f"Basic {b64encode(said).decode()}"
    assert plain_response(header) is None


def test_a_session_belongs_to_all_that_was_said_of_its_client() -> None:
    plain = CallerHeaders.from_request("", [AUTHORIZATION, ("User-Agent", "one"), ("Content-Length", "1")])
    assert plain.owner_digest(KEY) == CallerHeaders.from_request(
        "", [("User-Agent", "two"), AUTHORIZATION]
    ).owner_digest(KEY)
    others = [
        CallerHeaders.from_request("doAs=admin", [AUTHORIZATION]),
        CallerHeaders.from_request("", [AUTHORIZATION, COOKIE]),
        CallerHeaders.from_request("", [AUTHORIZATION, ("X-Remote-User", "admin")]),
        CallerHeaders.from_request("", [("Authorization", "Basic dXNlcjpvdGhlcg==")]),
        CallerHeaders.from_request("", [COOKIE]),
        CallerHeaders.from_request("", []),
    ]
    assert len({caller.owner_digest(KEY) for caller in (plain, *others)}) == 1 + len(others)
    assert plain.owner_digest(KEY) != plain.owner_digest(b"another key")


def test_a_client_that_sends_its_cookie_now_and_then_is_the_same() -> None:
    assert CallerHeaders.from_request("", [AUTHORIZATION]).owner_digest_without_cookie(
        KEY
    ) == CallerHeaders.from_request("", [AUTHORIZATION, COOKIE]).owner_digest_without_cookie(KEY)
    assert CallerHeaders.from_request("", [COOKIE]).owner_digest_without_cookie(KEY) != CallerHeaders.from_request(
        "", [("Cookie", "another")]
    ).owner_digest_without_cookie(KEY)


def test_no_caller_shows_its_secrets() -> None:
    shown = repr(CallerHeaders.from_request("doAs=admin", [AUTHORIZATION, COOKIE]))
    assert not any(secret in shown for secret in ("dXNl", "admin", "hive.server2.auth"))


def test_nothing_is_asked_in_a_name_that_was_proven_once_or_said_twice() -> None:
    assert CallerHeaders.from_request("", [AUTHORIZATION]).can_be_reused
    assert CallerHeaders.from_request("", [COOKIE]).can_be_reused
    assert not CallerHeaders.from_request("", [("Authorization", "Negotiate YII")]).can_be_reused
    assert not CallerHeaders.from_request("", [("Authorization", "Bearer token"), COOKIE]).can_be_reused
    assert not CallerHeaders.from_request("", [AUTHORIZATION, AUTHORIZATION]).can_be_reused


@pytest.mark.parametrize(
    ("headers", "login"),
    [
        ([], ""),
        ([AUTHORIZATION], "user"),
        ([COOKIE], "user"),
        ([AUTHORIZATION, COOKIE], "user"),
        ([AUTHORIZATION, ("Cookie", "a=b; hive.server2.auth=cu=user&rn=1&s=x==;Version=0")], "user"),
        ([("Cookie", 'hive.server2.auth="cu=user&rn=1"')], "user"),
        # The cookie's user is who the server would take it for, whatever name stands beside it.
        ([AUTHORIZATION, ("Cookie", "hive.server2.auth=cu=other&rn=1")], ""),
        ([COOKIE, ("Cookie", "hive.server2.auth=cu=other&rn=1")], ""),
        ([("Cookie", "hive.server2.auth=cu=user; hive.server2.auth=cu=other")], ""),
        ([AUTHORIZATION, ("Cookie", "hive.server2.auth=rn=1&cu=other")], ""),
        ([AUTHORIZATION, AUTHORIZATION], ""),
        ([("Authorization", "Negotiate YII")], ""),
        ([("Authorization", "Negotiate YII"), COOKIE], ""),
    ],
)
def test_a_login_is_who_the_server_takes_the_client_for(headers: list[tuple[str, str]], login: str) -> None:
    assert CallerHeaders.from_request("", headers).login == login


def test_headers_of_a_connection_stay_on_it() -> None:
    headers = [AUTHORIZATION, COOKIE, ("Connection", "close"), ("TRANSFER-ENCODING", "chunked"), ("Host", "a")]
    assert forwarded_headers([*headers, ("accept-encoding", "gzip")], to_backend=True) == [AUTHORIZATION, COOKIE]


def test_a_body_is_no_form_to_the_backend() -> None:
    form = ("content-type", "application/x-www-form-urlencoded")
    assert forwarded_headers([form], to_backend=True) == [("content-type", "application/x-thrift")]
    assert forwarded_headers([form], to_backend=False) == [form]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", []),
        ("a=b", []),
        ("doAs=x", ["x"]),
        ("DOAS=x&doas=y", ["x", "y"]),
        ("a;doAs=%78", ["x"]),
        ("doAs=x;a=b", ["x", "x;a=b"]),
        ("%64oAs=x+y", ["x y"]),
        ("doAs", [""]),
        # Equal to doAs for Java's equalsIgnoreCase.
        ("doA%C5%BF=x", ["x"]),
        ("doA\N{LATIN SMALL LETTER LONG S}=x", ["x"]),
        # For parsers that know this escape.
        ("doA%u0053=x", ["x"]),
        # Bytes that are no text.
        ("doA%C5=x", ["x"]),
    ],
)
def test_whom_a_request_wants_to_act_for_is_found_however_it_is_spelled(query: str, names: list[str]) -> None:
    assert proxy_users_of(query) == names


@pytest.mark.parametrize("raw", MESSAGES)
def test_a_body_is_one_message_and_nothing_else(raw: bytes) -> None:
    assert message_of(raw).raw == raw
    for body in (*(raw[:length] for length in range(len(raw))), raw + b"\0", raw + raw):
        with pytest.raises(RemoteProtocolError):
            message_of(body)


@given(st.binary(max_size=200), st.sampled_from(MESSAGES), st.integers(0, 60))
def test_any_other_body_is_refused_and_nothing_worse(noise: bytes, raw: bytes, keep: int) -> None:
    body = raw[:keep] + noise
    with suppress(RemoteProtocolError):
        assert message_of(body).raw == body
