"""The marks on the cookies of several backends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.upstream.http_cookies import cookies_for, mark_of_backend, marks_in, with_mark, without_marks

ONE, OTHER = mark_of_backend("one:10001"), mark_of_backend("another:10001")
LOGIN = "hive.server2.auth=cu=user&rn=1&s=x=="
WORDS = st.text(st.characters(codec="ascii", exclude_characters='=;"\\', categories=["L", "N", "P"]), min_size=1)


@given(WORDS, WORDS, st.sampled_from(["", '"']))
def test_a_cookie_comes_back_as_it_was_given_and_only_to_whom_it_is_from(
    name: str, value: str, quote: str
) -> None:
    given_cookie = f"{name}={quote}{value}{quote}"
    kept = with_mark(f"{given_cookie}; Path=/; HttpOnly", ONE).partition(";")[0]
    assert marks_in([kept]) == {ONE}
    assert (cookies_for(ONE, kept), cookies_for(OTHER, kept), without_marks(kept)) == (
        given_cookie,
        "",
        given_cookie,
    )


def test_attributes_stay_as_they_are() -> None:
    given_cookie = 'hive.server2.auth="cu=user&s=x="; Version=1; Path=/cliservice; Max-Age=86400; HttpOnly'
    kept = with_mark(given_cookie, ONE)
    assert kept.replace(f"starpruner-{ONE}.", "") == given_cookie
    assert kept.startswith('hive.server2.auth="starpruner-')


def test_of_many_cookies_each_backend_gets_its_own_and_the_clients() -> None:
    header = f"a=1; hive.server2.auth=starpruner-{ONE}.x=; b=starpruner-{OTHER}.2; {LOGIN}"
    assert cookies_for(ONE, header) == "a=1; hive.server2.auth=x="
    assert cookies_for(OTHER, header) == "a=1; b=2"
    assert marks_in([header, "c=3"]) == {ONE, OTHER}
    assert without_marks(header) == f"a=1; hive.server2.auth=x=; b=2; {LOGIN}"


@pytest.mark.parametrize(
    "text", ["", ";;", "a", "=", "a=starpruner-", "a=starpruner-0123456789aX.", "=;=starpruner-"]
)
def test_what_bears_no_mark_is_the_clients_own(text: str) -> None:
    assert marks_in([text]) == frozenset()
    assert cookies_for(ONE, text).replace(" ", "") == text.replace(" ", "")
