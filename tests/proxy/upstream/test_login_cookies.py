"""The server's cookie of a login over HTTP: for one backend, one user, one principal and one session."""

import pytest
from support.relay_dialogue import (
    OPERATION,
    SESSION,
    close_session,
    execute,
    executed,
    fetch,
    open_session,
    operation_call,
)

from proxy.operations.internal_call import Call
from proxy.upstream import login_cookies
from proxy.upstream.login_cookies import CookieOwner, LoginCookie, SessionCookies
from proxy.wire.hs2.calls import OperationHandle, SessionHandle

ANNA, BOB = CookieOwner("spark:1", "anna", "anna@R"), CookieOwner("spark:1", "bob", "bob@R")
PAIR = "hive.server2.auth=cu=anna&rn=1&s=x="
OTHER = SessionHandle(SESSION.replace(b"session", b"another"))


def call(name: str, framed: bytes) -> Call:
    return Call(name, 1, framed[4:], 1000)


OPEN, EXECUTE = call("OpenSession", open_session()), call("ExecuteStatement", execute("SELECT 1"))
FETCH = call("FetchResults", fetch())


def with_session() -> tuple[SessionCookies, LoginCookie]:
    cookies = SessionCookies()
    cookie = cookies.cookie_for(ANNA, OPEN)
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    cookies.session_opened(ANNA, SESSION, cookie)
    return cookies, cookie


@pytest.mark.parametrize(
    ("said", "is_encrypted", "kept"),
    [
        (PAIR, False, PAIR),
        (f"{PAIR}; Path=/; Max-Age=86400; HttpOnly", False, PAIR),
        (f"{PAIR}; Secure", True, PAIR),
        (f"{PAIR}; SECURE", False, None),
        ('hive.server2.auth="cu=anna"', False, 'hive.server2.auth="cu=anna"'),
        (f"{PAIR}; Max-Age=0", True, None),
        (f"{PAIR}; max-age = 0", True, None),
        (f"{PAIR}; Max-Age=-1", True, None),
        ('hive.server2.auth=""', True, None),
        ("hive.server2.auth=", True, None),
        ("hive.server2.auth=a b", True, None),
        ("hive.server2.auth=a\r\nX: 1", True, None),
        ("hive.server2.auth=" + "x" * 5000, True, None),
        ("JSESSIONID=1", True, None),
        ("", True, None),
    ],
)
def test_a_cookie_is_kept_as_its_server_allows(said: str, is_encrypted: bool, kept: str | None) -> None:  # noqa: FBT001
    cookie = LoginCookie("anna@R")
    cookie.login_accepted("anna@R", ["other=1", said], is_encrypted=is_encrypted)
    assert cookie.pair_for("anna@R") == kept


def test_a_cookie_is_of_one_principal() -> None:
    cookie = LoginCookie("anna@R")
    cookie.login_accepted("bob@R", [PAIR], is_encrypted=True)
    assert cookie.pair_for("anna@R") is None
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    assert cookie.pair_for("anna@R") == PAIR
    assert cookie.pair_for("bob@R") is None


def test_calls_about_a_session_have_its_cookie_and_nobody_elses() -> None:
    cookies, cookie = with_session()
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie
    for owner in (
        BOB,
        ANNA._replace(backend="spark:2"),
        ANNA._replace(user="bob"),
        ANNA._replace(principal="b@R"),
    ):
        assert cookies.cookie_for(owner, EXECUTE).pair_for(owner.principal) is None
    other = call("ExecuteStatement", execute("SELECT 1", session=OTHER))
    assert cookies.cookie_for(ANNA, other).pair_for("anna@R") is None
    assert cookies.cookie_for(ANNA, OPEN).pair_for("anna@R") is None


def test_an_operation_has_the_cookie_of_its_session() -> None:
    cookies, cookie = with_session()
    assert cookies.cookie_for(BOB, FETCH) is not cookie
    cookies.reply_came(ANNA, EXECUTE, cookie, executed()[4:])
    assert cookies.cookie_for(ANNA, FETCH) is cookie
    assert cookies.cookie_for(BOB, FETCH) is not cookie
    assert cookies.cookie_for(ANNA, call("CloseOperation", operation_call("CloseOperation"))) is cookie
    assert cookies.cookie_for(ANNA, FETCH) is not cookie


@pytest.mark.parametrize("raw", [b"", executed()[4:-9], b"\x80\1\0\2" + bytes(20), executed(7)[4:]])
def test_a_reply_that_cannot_be_read_names_no_operation(raw: bytes) -> None:
    cookies, cookie = with_session()
    cookies.reply_came(ANNA, EXECUTE, cookie, raw)
    assert len(cookies) == 1


def test_a_session_that_is_closed_has_none() -> None:
    cookies, cookie = with_session()
    cookies.reply_came(ANNA, EXECUTE, cookie, executed()[4:])
    assert cookies.cookie_for(ANNA, call("CloseSession", close_session())) is cookie
    cookie.session_closed()
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    for after in (EXECUTE, FETCH):
        assert cookies.cookie_for(ANNA, after).pair_for("anna@R") is None


def test_a_cookie_that_is_refused_again_and_again_is_not_tried_any_more() -> None:
    cookie = LoginCookie("anna@R")
    for number in range(10):
        pair = f"{PAIR}{number}"
        cookie.login_accepted("anna@R", [pair], is_encrypted=True)
        assert cookie.pair_for("anna@R") == (pair if number < 3 else None)
        cookie.refused(pair)


def test_one_end_of_a_cookie_counts_once_whatever_number_of_calls_it_meets() -> None:
    cookie = LoginCookie("anna@R")
    for number in range(10):
        pair = f"{PAIR}{number}"
        cookie.login_accepted("anna@R", [pair], is_encrypted=True)
        for _ in range(5):
            cookie.refused(pair)
        cookie.login_accepted("anna@R", [pair], is_encrypted=True)
        assert cookie.pair_for("anna@R") == pair
        cookie.accepted()
        cookie.drop(pair)
        assert cookie.pair_for("anna@R") is None


def test_a_server_takes_its_cookie_back() -> None:
    cookie = LoginCookie("anna@R")
    for said in (f"{PAIR}; Max-Age=0", "hive.server2.auth=; Max-Age=0", 'hive.server2.auth=""; max-age=-1'):
        cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
        cookie.login_accepted("anna@R", ["other=1; Max-Age=0"], is_encrypted=True)
        assert cookie.pair_for("anna@R") == PAIR
        cookie.login_accepted("anna@R", [said], is_encrypted=True)
        assert cookie.pair_for("anna@R") is None


def test_handles_that_are_made_up_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_cookies, "COOKIES_MAX", 2)
    cookies, cookie = with_session()
    for number in range(10):
        handle = OperationHandle(OPERATION.replace(b"operation", b"operatio%d" % number))
        of_bob = cookies.cookie_for(BOB, call("FetchResults", fetch(operation=handle)))
        assert of_bob.pair_for("bob@R") is None
        cookies.session_opened(BOB, OTHER, of_bob)
    assert len(cookies) == 1
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie


def test_a_handle_of_another_worker_has_the_cookie_that_its_first_call_brings() -> None:
    cookies = SessionCookies()
    cookie = cookies.cookie_for(ANNA, EXECUTE)
    assert len(cookies) == 0
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie


def test_one_that_was_not_used_for_a_day_is_dropped() -> None:
    now = 0.0
    cookies = SessionCookies(lambda: now)
    cookie = LoginCookie("anna@R")
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    for session in (SESSION, OTHER):
        cookies.session_opened(ANNA, session, cookie)
    now = 86_399.0
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie
    now = 86_400.0
    cookies.cookie_for(BOB, OPEN)
    assert len(cookies) == 1
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie


def test_one_that_has_been_replaced_meanwhile_stays() -> None:
    cookie = LoginCookie("anna@R")
    cookie.login_accepted("anna@R", [PAIR], is_encrypted=True)
    cookie.refused(f"{PAIR}of before")
    assert cookie.pair_for("anna@R") == PAIR


def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_cookies, "COOKIES_MAX", 2)
    cookies, cookie = with_session()
    another = LoginCookie("anna@R")
    another.login_accepted("anna@R", [PAIR], is_encrypted=True)
    cookies.session_opened(ANNA, OTHER, another)
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie, "and is the last one used"
    cookies.reply_came(ANNA, EXECUTE, cookie, executed(operation=OPERATION)[4:])
    assert len(cookies) == 2
    assert cookies.cookie_for(ANNA, EXECUTE) is cookie
