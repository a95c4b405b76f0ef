"""The pages: signing in, forms that only we can send, and that no text is code."""

import asyncio
import csv
import doctest
import re
import time
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import date, timedelta
from functools import partial
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from markupsafe import Markup
from support.admin_pages import PASSWORD, admin_port, busy_history
from support.histories import REWRITTEN, SQL, history_in, left_alone, record, scan, until
from support.worst_texts import seconds

from proxy.admin import formats, insertions, passwords
from proxy.admin.drawings import join_graph, timeline
from proxy.admin.explain_endpoint import ExplainRequest
from proxy.admin.insertions import compared
from proxy.admin.passwords import hash_of, is_password
from proxy.admin.tickets import COOKIE_S, Tickets, Visitor
from proxy.cli import main
from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection
from proxy.history.queries import today
from proxy.history.store import Store
from proxy.operations.session_port import SessionOpening
from proxy.session.decision import Decision
from proxy.session.explain.view import CountView, ExplainView, LimitView, NarrowingView, SplitsView, view
from proxy.session.timings import AskedQuery
from proxy.upstream.errors import BackendError
from rewriter import SkipReason, parse
from rewriter.sql.statement import parse_failure

VIEWS = ["/", "/live", "/history", "/digests/page", "/groups", "/why-not", "/shadow", "/explain"]
Port = TestClient[Any, Any]


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    async with admin_port(monkeypatch, busy_history(tmp_path)) as client:
        yield client


async def token(port: Port, path: str = "/sign-in") -> str:
    found = re.search(r'name="token" value="(\w+)"', await (await port.get(path)).text())
    assert found is not None
    return found[1]


async def sign_in(port: Port, user: str, password: str = PASSWORD, wanted: str = "/") -> Any:
    form = {"user": user, "password": password, "token": await token(port), "next": wanted}
    return await port.post("/sign-in", data=form, allow_redirects=False)


async def page(port: Port, path: str) -> str:
    got = await port.get(path, allow_redirects=False)
    assert got.status == HTTPStatus.OK
    return str(await got.text())


@pytest.mark.parametrize(
    "path", [*VIEWS, "/history/0000", "/live/drain?name=spark-b:10000", "/live/cancel?id=0000"]
)
async def test_who_has_not_signed_in_is_led_to_it_and_back(port: Port, path: str) -> None:
    got = await port.get(path, allow_redirects=False)
    assert got.status == HTTPStatus.SEE_OTHER
    assert got.headers["Location"].startswith("/sign-in?next=")
    assert "SELECT" not in await got.text()
    back = await sign_in(port, "root", wanted=path)
    assert (back.status, back.headers["Location"]) == (HTTPStatus.SEE_OTHER, path)
    assert (await port.get(path)).status in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}


@pytest.mark.parametrize(
    "wanted",
    [
        *("//evil.example", "///evil.example", "https://evil.example", "https:evil.example", "http:/history"),
        *("/\\evil.example", "\\\\evil.example", "/%2f/evil.example", "/%5cevil.example", "/.//evil.example"),
        *(
            "/history/..//evil.example",
            "/history/a/b",
            "//evil.example/history",
            "//[/history",
            "javascript:alert(1)",
        ),
        *("/sign-in?next=/", "/sign-out", "/nowhere", "history", "@evil.example", ""),
    ],
)
async def test_nobody_is_led_elsewhere(port: Port, wanted: str) -> None:
    assert (await sign_in(port, "ann", wanted=wanted)).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("wanted", "location"),
    [
        ("/history?user=ann&text=a%20b%0d%0aX", "/history?user=ann&text=a%20b%0d%0aX"),
        ("/history?text=\u00e9 b", "/history?text=%C3%A9%20b"),
        ("/history#now", "/history"),
        (" /history", "/history"),
    ],
)
async def test_a_visitor_is_led_back_to_the_page_with_its_query(port: Port, wanted: str, location: str) -> None:
    assert (await sign_in(port, "ann", wanted=wanted)).headers["Location"] == location


@pytest.mark.parametrize("cut", ["\r\n", "\n", "\r", "\t", "\0", "\x7f", "\u2028"])
async def test_an_address_that_ends_a_line_is_refused_and_sets_no_header(port: Port, cut: str) -> None:
    wanted = f"/history{cut}Set-Cookie: starpruner=evil"
    for got in (await sign_in(port, "ann", wanted=wanted), await port.get("/sign-in", params={"next": wanted})):
        assert got.status == HTTPStatus.BAD_REQUEST
        assert "Set-Cookie" not in got.headers


@pytest.mark.parametrize(("user", "password"), [("root", "wrong"), ("ann", "wrong"), ("", PASSWORD)])
async def test_a_wrong_password_signs_nobody_in(port: Port, user: str, password: str) -> None:
    got = await sign_in(port, user, password)
    assert got.status == HTTPStatus.UNAUTHORIZED
    assert 'role="alert"' in await got.text()
    assert (await port.get("/", allow_redirects=False)).status == HTTPStatus.SEE_OTHER


async def test_a_user_sees_the_own_statements_alone_and_none_after_signing_out(port: Port) -> None:
    cookie = (await sign_in(port, "bob")).headers["Set-Cookie"]
    assert "HttpOnly" in cookie, "out of reach of scripts"
    assert "SameSite=Strict" in cookie, "and of other origins"
    for path in VIEWS:
        assert "sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 'm" not in await page(port, path)
        assert "running" not in await page(port, "/history")
    assert "User</th>" not in await page(port, "/history")
    await port.post("/sign-out", data={"token": await token(port, "/")})
    assert (await port.get("/", allow_redirects=False)).status == HTTPStatus.SEE_OTHER
    await sign_in(port, "root")
    assert "User</th>" in await page(port, "/history")


async def test_forms_without_our_token_do_nothing(port: Port) -> None:
    await sign_in(port, "ann")
    for path in ("/sign-out", "/explain/page", "/sign-in"):
        for forged in ("", "0" * 64):
            got = await port.post(path, data={"token": forged, "sql": "SELECT 1"})
            assert got.status == HTTPStatus.FORBIDDEN, path
    for header in ({"Origin": "https://evil.example"}, {"Content-Type": "text/plain"}):
        got = await port.post("/sign-out", data={"token": await token(port, "/")}, headers=header)
        assert got.status == HTTPStatus.FORBIDDEN
    assert (await port.get("/", allow_redirects=False)).status == HTTPStatus.OK


async def test_nobody_has_to_be_read_who_sends_a_long_form(port: Port) -> None:
    form = {"user": "ann", "password": "x" * 20_000, "token": await token(port)}
    assert (await port.post("/sign-in", data=form)).status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    await sign_in(port, "ann")
    form = {"sql": "x" * 20_000, "token": await token(port, "/explain")}
    assert (await port.post("/explain/page", data=form)).status == HTTPStatus.OK


async def test_the_front_page_says_what_was_saved_and_what_was_not_and_why(port: Port) -> None:
    await sign_in(port, "root")
    shown = await page(port, "/")
    for part in (
        *(
            "Time saved",
            "measured in",
            "by an estimate for",
            "Time spent in vain is taken off",
            "Partitions not read",
        ),
        *("Statements that gained most", "Slowest today that were not rewritten", "not a partition column"),
        *("The last 24 hours", "The last 7 days", "As a table", "What to do next", "starpruner advise"),
    ):
        assert part in shown
    for part in ("spark-b:10000", "Connection refused", "10.0.0.7", "Quarantine"):
        assert part not in shown
        assert part in await page(port, "/live")


async def test_a_day_on_which_time_was_lost_is_shown_as_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store(tmp_path, bytes_max=10_000_000)) as store:
        times: dict[str, Any] = {"fingerprint": "f1", "lists_files": False, "deciding_s": 0.0, "at": today()}
        store.add([left_alone(run_s=1.0, **times), left_alone(run_s=1.0, **times), record(run_s=21.0, **times)])
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        await sign_in(port, "bob")
        assert '"loss"' not in await page(port, "/"), "it was ann's"
        await sign_in(port, "ann")
        shown = await page(port, "/")
    for part in (
        '<dt>Time lost</dt>\n    <dd><strong class="loss">20.0 s<',
        'days: <strong class="loss">20.0 s lost',
    ):
        assert part in shown
    assert 'class="loss" x="' in shown
    assert "-20.0 s</td>" in shown, "the table behind the bars"


async def test_time_of_statements_that_were_left_alone_is_at_stake_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, partly, typed = scan(skip="NOT_A_PARTITION_COLUMN"), scan("clicks", skip="NO_EQUALITY"), "TYPES_DIFFER"
    times: dict[str, Any] = {"at": today() + 1, "deciding_s": 1.0}
    with closing(Store(tmp_path, bytes_max=10_000_000)) as store:
        store.add([left_alone(run_s=90.0, scans=[day, scan("rents", skip=day.skip_reason), partly], **times)])
        store.add(
            [left_alone(run_s=9.0, scans=[day], **times), left_alone(typed, run_s=99.0, user="bob", **times)]
        )
        # Of these nothing is at stake: one was rewritten, one failed, one was no query, and one ran yesterday.
        store.add([record(scans=[day, scan()], **times), left_alone(run_s=5.0, outcome="failed", **times)])
        store.add([left_alone(skip_reason="NOT_A_QUERY", run_s=5.0, **times), left_alone(at=today() - 9, run_s=5)])
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        await sign_in(port, "ann")
        shown = await page(port, "/")
        assert "Left alone today: 1 min 41 s in 2 statements" in shown
        assert 'reason=NOT_A_PARTITION_COLUMN&amp;outcome=original">2 statements</a> of sales, rents.' in shown
        assert 'reason=NO_EQUALITY&amp;outcome=original">1 statement</a> of clicks.' in shown
        assert shown.index("Partition by it, or a file index") < shown.index("Write the condition in the SELECT")
        assert typed not in shown, "it is bob's"
        assert 'href="/why-not#NO_EQUALITY"' in shown
        assert 'id="NO_EQUALITY"' in await page(port, "/why-not")
        await sign_in(port, "root")
        assert "Left alone today: 3 min 21 s in 3 statements" in await page(port, "/")


async def test_waiting_is_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(tmp_path, bytes_max=10_000_000)) as store:
        store.add([left_alone("TRIAL", at=today() + 1)])
    async with admin_port(monkeypatch, history_in(tmp_path), is_open=True) as port:
        shown = await page(port, "/")
    assert "nothing: the faster way is taken from then on" in shown
    steps = shown[shown.index('<ol class="steps">') : shown.index("</ol>")]
    assert steps.count("<li>") == 1, "to ask for advice on layouts is always something to do"


async def test_every_page_names_the_zone_of_its_times(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    await sign_in(port, "root")
    found = re.search(r'href="(/history/\w+)"', await page(port, "/history"))
    assert found is not None
    for name, written in (("Asia/Kathmandu", "UTC+05:45"), ("UTC", "UTC"), ("Asia/Tokyo", "JST (UTC+09:00)")):
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("TZ", name)
            time.tzset()
            for path in (*VIEWS, found[1]):
                assert f"machine: {written}." in await page(port, path), path
            assert f" {written}</time>" in await page(port, found[1])
        time.tzset()


async def test_the_page_live_loads_itself_anew_for_who_wants_it(port: Port) -> None:
    await sign_in(port, "ann")
    assert "Refresh" not in (await port.get("/live")).headers
    answer = await port.get("/live?refresh=yes")
    assert answer.headers["Refresh"] == "10"
    assert "Stop that" in await answer.text()


async def test_an_administrator_drains_a_backend_by_a_button_and_nobody_else_does(port: Port) -> None:
    asking, drained = "/live/drain?name=spark-a:10000", {"name": "spark-a:10000", "on": "yes"}
    await sign_in(port, "ann")
    assert "Give it no more" not in await page(port, "/live")
    assert (await port.get(asking)).status == HTTPStatus.FORBIDDEN
    got = await port.post("/backends/page", data={"token": await token(port, "/live"), **drained})
    assert got.status == HTTPStatus.FORBIDDEN
    assert (await port.post("/backends/spark-a:10000/drain")).status == HTTPStatus.FORBIDDEN
    await sign_in(port, "root")
    assert 'action="/live/drain"' in await page(port, "/live")
    assert (await port.get("/live/drain?name=nowhere")).status == HTTPStatus.NOT_FOUND
    assert "draining" not in await page(port, "/live")
    got = await port.post("/backends/page", data={"token": await token(port, asking), **drained})
    assert (str(got.url.path), "Give it sessions again" in await got.text()) == ("/live", True)
    got = await port.post("/backends/page", data={"token": await token(port, "/live"), **drained, "on": "no"})
    assert "Give it sessions again" not in await got.text()
    got = await port.post("/backends/spark-a:10000/drain")
    assert (await got.json())["backends"][0]["draining"] is True


async def test_who_drains_a_backend_is_told_what_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = history_in(tmp_path)
    for number in range(3):
        backend = "spark-b:10000" if number else "spark-a:10000"
        _ = history.session_opened(SessionOpening({}, "o", "ann", "10.0.0.7", backend))
    async with admin_port(monkeypatch, history) as port:
        await sign_in(port, "root")
        shown = await page(port, "/live/drain?name=spark-b:10000")
        assert "2 sessions are open on it, and stay there" in shown
        assert "New sessions go to spark-a:10000." in shown
        assert "refused" not in shown
        _ = await port.post("/backends/spark-a:10000/drain")
        shown = await page(port, "/live/drain?name=spark-b:10000")
        assert "No other backend takes sessions: every new session is refused" in shown


async def test_at_an_open_port_with_administrators_nobody_else_drains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with admin_port(monkeypatch, history_in(tmp_path), is_open=True) as port:
        drained = {"name": "spark-a:10000", "on": "yes"}
        drained["token"] = await token(port, "/live/drain?name=spark-a:10000")
        assert (await port.post("/backends/page", data=drained)).status == HTTPStatus.FORBIDDEN
        assert "draining" not in await page(port, "/live")


async def test_two_days_of_digests_are_compared(port: Port) -> None:
    await sign_in(port, "root")
    shown = await page(port, "/digests/page?earlier=2026-03-01&later=2026-03-02")
    assert ">2026-03-01<" in shown
    for query in ("earlier=2026-03-01&later=", "earlier=may&later=june"):
        assert "The days are not understood" in await page(port, f"/digests/page?{query}")


async def test_a_statement_has_both_texts_and_its_reasons(port: Port) -> None:
    await sign_in(port, "root")
    for outcome, parts in {
        "rewritten": ("<ins>", "124 of 2,924 kept", "Key queries", "Where the keys come from"),
        "original": ("Why it was not rewritten",),
        "failed": ("TABLE_OR_VIEW_NOT_FOUND",),
        "fallback": ("Error of the rewritten statement", "A partition was gone."),
    }.items():
        found = re.search(r'href="/history/(\w+)"', await page(port, f"/history?outcome={outcome}"))
        assert found is not None
        shown = await page(port, f"/history/{found[1]}")
        for part in parts:
            assert part in shown, (outcome, part)
    missing = await port.get("/history/nothing")
    assert missing.status == HTTPStatus.NOT_FOUND


async def test_the_history_is_filtered_and_followed(port: Port) -> None:
    await sign_in(port, "root")
    shown = await page(port, "/history")
    older = re.search(r'rel="next" href="([^"]+)"', shown)
    assert older is not None
    assert shown.count("/history/0") == 50
    assert (await page(port, older[1].replace("&amp;", "&"))).count("/history/0") == 11
    assert (await page(port, "/history?reason=REDUCER_UNFILTERED")).count("/history/0") == 6
    assert "To do:" in await page(port, "/history?reason=REDUCER_UNFILTERED")
    assert "No statement is like that" in await page(port, "/history?text=nowhere")


async def test_a_limit_leads_to_the_statements_that_met_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, bytes_max=10_000_000)
    limit = LimitView("wide", "sales", "would_reject", "It would read all.")
    met = [record(limits=[limit]) for _ in range(51)]
    store.add([*met, *(record() for _ in range(51))])
    store.close()
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        await sign_in(port, "root")
        assert '<a href="/history?limit_met=wide">wide</a>' in await page(port, f"/history/{met[0].id}")
        shown = await page(port, "/history?limit_met=wide")
        older, as_csv = (
            re.search(rf'href="(/{way}[^"]+)"', shown) for way in (r"history\?[^\"]+before", "history.csv")
        )
        assert older is not None
        assert as_csv is not None
        assert '<input name="limit_met" value="wide"' in shown
        last = await page(port, older[1].replace("&amp;", "&"))
        assert (last.count("/history/0"), met[0].id in last) == (1, True)
        assert (await (await port.get(as_csv[1])).text()).count("SELECT") == len(met)
        asked = {"limit_met": "wide", "limit": "500"}
        answer = await (await port.get("/statements", params=asked)).json()
        assert [line["id"] for line in answer["statements"]] == [one.id for one in reversed(met)]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        *(("since=yesterday", "is not understood: write a time as"), ("until=0001-01-01", "is not understood")),
        *(
            ("least_s=nan", "is not understood: write seconds"),
            ("last=month", "for `last` one of hour, 24 hours"),
        ),
        ("since=2026-05-02T10:00&until=2026-05-02T10:00", "To has to be later"),
    ],
)
async def test_a_field_that_is_not_understood_has_a_sentence(port: Port, field: str, sentence: str) -> None:
    await sign_in(port, "root")
    assert sentence in await page(port, f"/history?{field}")
    got = await port.get(f"/history.csv?{field}", allow_redirects=False)
    assert got.headers["Location"] == f"/history?{field}"


async def test_the_history_is_searched_by_times_and_sorted_by_them(port: Port) -> None:
    await sign_in(port, "root")
    tomorrow, before = (str(date.today() + timedelta(days)) + "T00:00" for days in (1, -1))  # noqa: DTZ011
    assert "No statement is like that" in await page(port, f"/history?since={tomorrow}")
    shown = await page(port, f"/history?since={before}&until={tomorrow}&last=hour&order=slowest&least_s=90")
    assert (shown.count(">1 min 35 s<"), shown.count("/history/0"), 'name="last"' in shown) == (6, 6, False)
    assert f'value="{before}"' in shown
    found = re.search(
        r'rel="next" href="([^"]+)">Faster<', await page(port, "/history?last=24+hours&order=slowest")
    )
    assert found is not None
    assert (await page(port, found[1].replace("&amp;", "&"))).count("/history/0") == 11


async def test_what_is_filtered_comes_as_csv_without_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, bytes_max=10_000_000)
    store.add([record(original=f"{sign}1+1", label=f"{sign}x", run_s=2.0) for sign in "=+-@"])
    store.add([left_alone(user="bob", at=0.0)])
    store.close()
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        assert (await port.get("/history.csv", allow_redirects=False)).status == HTTPStatus.SEE_OTHER
        await sign_in(port, "ann")
        got = await port.get("/history.csv?least_s=1")
        assert got.headers["Content-Disposition"] == 'attachment; filename="statements.csv"'
        lines = list(csv.DictReader(StringIO(await got.text())))
        assert [one["excerpt"] for one in lines] == [f"'{sign}1+1" for sign in "@-+="], "and none of bob's"
        assert {(one["label"][:1], one["run_s"]) for one in lines} == {("'", "2.0")}
        await sign_in(port, "bob")
        (line,) = csv.DictReader(StringIO(await (await port.get("/history.csv")).text()))
        assert (line["started_at"], line["reasons"]) == ("1970-01-01T00:00:00Z", "NO_EQUALITY")


async def test_a_file_of_csv_ends_at_its_bound(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.admin.statements_view.CSV_ROWS_MAX", 7)
    await sign_in(port, "root")
    lines = csv.DictReader(StringIO(await (await port.get("/history.csv")).text()))
    newest = re.findall(r'href="/history/(\w+)"', await page(port, "/history"))
    assert [one["id"] for one in lines] == newest[:7]


async def test_groups_lead_to_their_statements(port: Port) -> None:
    await sign_in(port, "root")
    for by, name in (("table", "clicks"), ("user", "bob"), ("client", "127.0.0.1"), ("nothing", "returns")):
        shown = await page(port, f"/groups?by={by}")
        row = re.search(rf'href="(/history\?[^"]*)">{name}</a></th>.*?>([\d,]+)</td>', shown, re.DOTALL)
        assert row is not None, by
        statements = await port.get(row[1].replace("&amp;", "&"))
        assert (await statements.text()).count("/history/0") == min(50, int(row[2])), by
    await sign_in(port, "bob")
    assert "By user" not in await page(port, "/groups")
    assert ">ann<" not in await page(port, "/groups?by=user")


async def test_each_cell_of_a_table_knows_its_column(port: Port) -> None:
    await sign_in(port, "root")
    shown = await page(port, "/digests/page")
    for role in ("row", "col"):
        assert re.search(rf'<th scope="{role}"[^>]* role="{role}\w*header"', shown)
    assert re.search(r'<td class="number" role="cell" data-label="Time saved">\d', shown)
    assert shown.count('role="row"') == shown.count("<tr")


async def test_no_text_is_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = "<script>alert(1)</script>"
    store = Store(tmp_path, bytes_max=10_000_000)
    one = left_alone(
        original=f"SELECT '{bad}'", cause=f"`{bad}`", skip_reason="NO_EQUALITY", message=bad, user=bad
    )
    two = record(
        original=f"SELECT '{bad}'", rewritten=f"SELECT '{bad}' {bad}", database=bad, client=bad, label=bad
    )
    store.add([one, two])
    store.close()
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        await sign_in(port, "root")
        for path in (*VIEWS, f"/history/{one.id}", f"/history/{two.id}", f"/history?text={bad}&table={bad}",
                     f"/groups?by={bad}", "/groups?by=label", f"/history?client={bad}&since={bad}",
                     f"/explain?statement={one.id}", "/sign-in?next=" + '"><script>'):  # fmt: skip
            shown = await page(port, path)
            assert "<script" not in shown, path
        for path in ("/history/" + one.id, "/history/" + two.id):
            assert "&lt;script&gt;" in await page(port, path)
        assert 'href="/history?label=%3Cscript%3E' in await page(port, f"/history/{two.id}")


async def test_explaining_asks_the_backend_as_the_user_who_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str | None, bool]] = []

    async def explain(
        _: object, request: ExplainRequest, user: str, password: str, *__: object, **___: object
    ) -> None:
        asked.append((request.sql, f"{user}:{password}", request.database, request.run_key_queries))
        raise BackendError("it is <down>")

    monkeypatch.setattr("proxy.admin.app.explain_as_user", explain)
    async with admin_port(monkeypatch, busy_history(tmp_path)) as port:
        await sign_in(port, "ann")
        form = {"sql": "SELECT 1", "database": "shop", "user": "carl", "password": PASSWORD}
        got = await port.post("/explain/page", data={**form, "token": await token(port, "/explain"), "keys": "on"})
        shown = await got.text()
        assert "it is &lt;down&gt;" in shown
        assert 'value="carl"' in shown
        assert f'value="{PASSWORD}"' not in shown
        await port.post("/explain/page", data={"sql": "SELECT 2", "token": await token(port, "/explain")})
    assert asked == [
        ("SELECT 1", f"carl:{PASSWORD}", "shop", True),
        ("SELECT 2", "anonymous:anonymous", None, False),
    ]


async def test_an_explanation_is_shown_as_a_statement_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def explain(_: object, request: ExplainRequest, *__: object, **___: object) -> ExplainView:
        found = parse(request.sql, chars_max=10_000, has_file_index=False)
        if isinstance(found, SkipReason):
            return view(Decision(request.sql, skip=found, parse_failure=parse_failure(request.sql)))
        done = msgspec.structs.replace(view(Decision(SQL)), rewritten=REWRITTEN, changed=True)
        would = NarrowingView("`ds` IN ('x')", None, CountView(), CountView(), CountView(), SplitsView())
        left = msgspec.structs.replace(scan("clicks", skip="TYPES_DIFFER", cause="c.ds is a date"), would=would)
        return msgspec.structs.replace(done, scans=[scan(), left])

    monkeypatch.setattr("proxy.admin.app.explain_as_user", explain)
    async with admin_port(monkeypatch, busy_history(tmp_path)) as port:
        await sign_in(port, "ann")
        for sql, parts in {
            SQL: (
                "<ins>",
                "124 of 2,924 kept",
                "31 keys",
                "Types differ.",
                "To do:",
                "&#39;x&#39;",
                "Scan of sales",
            ),
            "SELECT a\n FORM sales JOIN d USING (k)": ("at line 2, column 7: <code>FORM sales</code>", "To do:"),
            "SELECT a\n FROM t, d WHERE x = '1": ("without an end at line 2, column 22: <code>&#39;1</code>",),
        }.items():
            got = await port.post("/explain/page", data={"sql": sql, "token": await token(port, "/explain")})
            shown = await got.text()
            assert [part for part in parts if part not in shown] == []


async def test_an_empty_and_a_broken_history_have_pages_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admin_port(monkeypatch, history_in(None), is_open=True) as port:
        for path in VIEWS:
            assert "switched off" in await page(port, path) or path in {"/explain", "/live"}
    Store(tmp_path, bytes_max=10_000_000).close()
    async with admin_port(monkeypatch, history_in(tmp_path), is_open=True) as port:
        assert "No statement has ended today" in await page(port, "/")
        assert "No statement has been kept yet" in await page(port, "/history")
        assert "No statement has been left alone" in await page(port, "/why-not")
        assert "has been kept yet" in await page(port, "/digests/page")
    broken = history_in(tmp_path)
    broken.error = "history.sqlite cannot be written: disk full"
    async with admin_port(monkeypatch, broken, is_open=True) as port:
        assert "disk full" in await page(port, "/")


def test_a_cookie_counts_only_as_it_was_made_and_for_a_while() -> None:
    tickets, now = Tickets(b"k"), time.time()
    ann = Visitor("ann", is_administrator=False)
    cookie = tickets.cookie(ann, now)
    assert tickets.visitor(cookie, now) == ann
    assert tickets.visitor(cookie, now + COOKIE_S + 1) is None
    assert tickets.visitor(tickets.cookie(None, now), now) is None
    body, signature = cookie.split(".")
    forged = [
        f"{body}.{signature[:-1]}x",
        f"x{cookie}",
        body,
        *("", ".", f"{body}.", "é.é", "\udcff.\udcff"),
        "x" * 10_000,
    ]
    assert [tickets.visitor(each, now) for each in forged] == [None] * len(forged)
    assert Tickets(b"l").visitor(cookie, now) is None
    assert tickets.is_token(tickets.token(cookie), cookie)
    assert not tickets.is_token(tickets.token(cookie), tickets.cookie(ann, now))
    assert not tickets.is_token(signature, cookie)


def test_a_password_is_known_by_its_hash_alone() -> None:
    hashed = hash_of("pässword")
    assert is_password("pässword", hashed)
    assert not is_password("password", hashed)
    assert hash_of("pässword") != hashed
    for odd in ("", "scrypt", "scrypt$40$8$1$YQ==$YQ==", "scrypt$15$8$1$!$!", "scrypt$a$8$1$YQ==$YQ=="):
        assert not is_password("pässword", odd)


def test_the_command_prints_a_hash_that_the_configuration_takes() -> None:
    printed = CliRunner().invoke(main, ["hash-password"], input="pässword\npässword\n")
    assert printed.exit_code == 0
    hashed = printed.stdout.strip().splitlines()[-1]
    assert is_password("pässword", hashed)
    config = msgspec.convert({"admin": {"users": {"anna": hashed}}}, Config)
    assert hashed not in repr(config)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"admin": {"users": {"anna": "pässword"}}}, Config)


@pytest.mark.parametrize("module", [formats, insertions, passwords])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from(["f", ",", " ", "a"]), st.booleans())))
def test_insertions_are_marked_so_that_the_rest_is_the_original(words: list[tuple[str, bool]]) -> None:
    original = "".join(word for word, is_inserted in words if not is_inserted)
    rewritten = "".join(word for word, _ in words)
    # Words that touch one another are one.
    assume(not re.search(r"\w\w|  ", rewritten + "." + original))
    own, inserted = compared(original, rewritten)
    assert "".join(text for text, _ in inserted) == rewritten
    assert "".join(text for text, is_own in inserted if not is_own) == original
    assert not any(is_own for _, is_own in own)


def test_texts_that_differ_otherwise_are_marked_between_their_ends() -> None:
    assert compared("FROM f, g WHERE x", "FROM f, h WHERE x") == (
        [("FROM f, ", False), ("g", True), (" WHERE x", False)],
        [("FROM f, ", False), ("h", True), (" WHERE x", False)],
    )


def test_long_texts_of_equal_words_are_compared_at_once() -> None:
    # To look for the longest equal part of a tenth of them took two minutes, in which the event loop waited.
    for original in (",a" * 20_000, f"x{',a' * 20_000}y"):
        assert seconds(partial(compared, original, f"z{',a,b' * 20_000}w")) < 5


def test_a_statement_without_keys_has_no_graph_and_one_with_many_a_bounded_one() -> None:
    assert join_graph(left_alone()) is None
    many = join_graph(record(scans=record().scans * 50))
    assert many is not None
    assert many.height < 1_000


def test_the_timeline_has_each_query_at_its_place() -> None:
    asked = [AskedQuery("descriptions", 0.01, 0.02), AskedQuery("keys", 0.05, 0.03)]
    decision, description, keys, run = timeline(record(deciding_s=0.1, run_s=0.66, asked=asked))
    assert (decision.x, decision.width, run.x, run.width) == (0.0, 100.0, 100.0, 660.0)
    assert (description.kind, description.x, description.width) == ("descriptions", 10.0, 20.0)
    assert (keys.label, keys.x, keys.width) == ("Key query", 50.0, 30.0)
    assert [span.width for span in timeline(record(deciding_s=0, run_s=None, asked=[]))] == [0] * 2


async def test_shadow_runs_have_a_page_that_is_linked_where_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = busy_history(tmp_path)
    async with admin_port(monkeypatch, history) as port:
        await sign_in(port, "root")
        assert '"/shadow"' not in await page(port, "/")
        history.start()
        await asyncio.to_thread(until, lambda: history.has_shadows)
        history.close()
        assert '"/shadow"' in await page(port, "/")
        shown = await page(port, "/shadow")
        assert "6 of them ran a second time, rewritten, and none gave another answer." in shown
        cells = re.sub(r' (?:role|data-label)="[^"]*"', "", shown)
        assert '<th scope="row">sales</th><td class="number">6</td><td class="number">3 min 48 s</td>' in cells


async def test_in_shadow_mode_the_page_is_linked_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admin_port(monkeypatch, history_in(tmp_path), rewrite=RewriteSection(mode="shadow")) as port:
        await sign_in(port, "root")
        assert '"/shadow"' in await page(port, "/")
        assert "No statement has been kept yet." in await page(port, "/shadow")


def test_a_cell_that_knows_its_column_gets_no_attribute_by_the_name_of_that() -> None:
    table = Markup('<table><tr><th scope="col">{}</th></tr><tr><td>1</td></tr></table>')
    assert str(formats.cards(table.format('" onclick="x'))).endswith(
        '<td role="cell" data-label="&#34; onclick=&#34;x">1</td></tr></table>'
    )
