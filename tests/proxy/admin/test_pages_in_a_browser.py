"""The pages in Chromium: each view and state, light and dark, on a screen and on a phone.

Chromium is the system's own (Debian's package `chromium`); without it these tests are skipped. With
STARPRUNER_SCREENSHOTS=directory each page is also kept as a picture.
"""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from support.admin_pages import PASSWORD, ScriptedCanceller, admin_port, busy_history, star
from support.histories import REWRITTEN, SQL, history_in

from proxy.history.history import History
from proxy.history.store import Store
from proxy.session.decision import Decision
from proxy.session.explain.view import ExplainView, view
from rewriter import SkipReason

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

VIEWS = {
    "today": "/",
    "live": "/live",
    "drain": "/live/drain?name=spark-a:10000",
    "history": "/history",
    "digests": "/digests/page",
    "groups": "/groups",
    "why-not": "/why-not",
    "shadow": "/shadow",
    "explain": "/explain",
}
SHOWS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390), "dark-phone": ("dark", 390)}
# Half a minute, which Playwright waits by itself, is not enough on a busy machine.
PATIENCE_S = 120.0
SHOTS = os.environ.get("STARPRUNER_SCREENSHOTS")

# The rules of axe-core that show a reader is shut out: WCAG 2.2, level AA, and good practice.
AXE: Final = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
SIDEWAYS: Final = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
# On a phone no table may hide its last columns: it is made of cards.
CUT: Final = "() => [...document.querySelectorAll('.scroll:has(table)')].some(e => e.scrollWidth > e.clientWidth)"


@asynccontextmanager
async def browser(
    history: History, monkeypatch: Any, show: str = "light", *, forbidden: str = "status of"
) -> AsyncIterator[tuple[Any, str]]:
    """A page of a browser, and the address of the port. Its complaints fail the test."""
    playwright = pytest.importorskip("playwright.async_api")
    scheme, width = SHOWS[show]
    complaints: list[str] = []

    def requested(one: Any) -> None:
        if not one.url.startswith((base, "data:")):
            complaints.append(one.url)

    canceller = ScriptedCanceller(*(one.id for one in history.state().running))
    async with (
        admin_port(monkeypatch, history, canceller=canceller) as port,
        playwright.async_playwright() as driver,
    ):
        # Root in a container has no sandbox of Chromium's.
        base = f"http://{port.host}:{port.port}"
        chromium = await driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=1000 * PATIENCE_S
        )
        context = await chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        context.set_default_timeout(1000 * PATIENCE_S)
        page = await context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", requested)
        yield page, base
        await chromium.close()
    assert [each for each in complaints if "status of" not in each and forbidden not in each] == []


async def signed_in(page: Any, base: str, user: str = "root") -> None:
    await page.goto(f"{base}/")
    await page.get_by_label("Name").fill(user)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Today", exact=True).wait_for()


async def painted(page: Any) -> None:
    """Chromium drops the keys that are pressed before a page is painted for the first time."""
    # Playwright's own waiting evaluates a text, which the pages' policy forbids.
    await page.evaluate(
        "new Promise(done => new PerformanceObserver(done).observe({type: 'paint', buffered: true}))"
        ".then(() => true)"
    )


async def is_well(page: Any, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    found = await axe.Axe().run(page, options=AXE)
    assert found.response["violations"] == [], name
    assert not await page.evaluate(SIDEWAYS), name
    assert not (name.endswith("phone") and await page.evaluate(CUT)), name


async def explained(*_: object, **__: object) -> ExplainView:
    told = view(Decision(SQL, skip=SkipReason.NOT_WORTH_IT))
    return msgspec.structs.replace(told, scans=star(0.0).scans, rewritten=REWRITTEN, changed=True)


def state(name: str, directory: Path) -> History:
    if name == "busy":
        history = busy_history(directory)
        history.has_shadows = True
        return history
    if name == "empty":
        Store(directory, bytes_max=10_000_000).close()
        return history_in(directory)
    (directory / "history.sqlite").write_bytes(b"this is no database" * 500)
    history = history_in(directory)
    history.error = f"{directory} cannot be written: No space left on device"
    return history


@pytest.mark.parametrize("show", ["light", "phone", "dark", "dark-phone"])
@pytest.mark.parametrize("name", ["busy", "empty", "error"])
async def test_every_view_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, show: str
) -> None:
    monkeypatch.setattr("proxy.admin.app.explain_as_user", explained)
    async with browser(state(name, tmp_path), monkeypatch, show) as (page, base):
        await page.goto(f"{base}/history")
        await is_well(page, f"sign-in-{name}-{show}")
        await signed_in(page, base)
        for view, path in VIEWS.items():
            await page.goto(f"{base}{path}")
            for closed in await page.locator("main details > summary").all():
                await closed.click()
            await is_well(page, f"{view}-{name}-{show}")
        if name == "busy":
            await page.goto(f"{base}/live")
            await page.get_by_role("button", name="Cancel it (of ann").click()
            await page.get_by_role("heading", name="Cancel the statement of ann?").wait_for()
            await is_well(page, f"cancel-{show}")
            await page.get_by_role("button", name="Cancel the statement").click()
            await page.wait_for_url("**/live#running")
            await page.goto(f"{base}/explain")
            await page.get_by_label("Statement").fill(SQL)
            await page.get_by_label("Password").fill(PASSWORD)
            await page.get_by_role("button", name="Explain").click()
            await page.get_by_role("heading", name="Tables that could be narrowed").wait_for()
            await is_well(page, f"explained-{show}")
            for outcome in ("rewritten", "original", "failed", "fallback"):
                await page.goto(f"{base}/history?outcome={outcome}")
                await page.locator("tbody a").first.click()
                await page.get_by_role("heading", name="Texts").wait_for()
                await is_well(page, f"statement-{outcome}-{show}")


async def test_a_wrong_password_and_a_missing_page_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(busy_history(tmp_path), monkeypatch) as (page, base):
        await page.goto(f"{base}/sign-in")
        await page.get_by_label("Name").fill("root")
        await page.get_by_label("Password").fill("wrong")
        await page.get_by_role("button", name="Sign in").click()
        assert "wrong" in await page.get_by_role("alert").inner_text()
        await is_well(page, "sign-in-refused")
        await signed_in(page, base)
        await page.goto(f"{base}/nowhere")
        await is_well(page, "nowhere")


async def test_the_pages_work_by_keyboard_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with browser(busy_history(tmp_path), monkeypatch) as (page, base):
        await signed_in(page, base, "ann")
        await page.wait_for_load_state()
        await painted(page)
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/#main")
        await page.goto(f"{base}/history")
        await painted(page)
        await page.get_by_role("searchbox", name="Text").focus()
        await page.keyboard.type("m53")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/history?text=m53*")
        await painted(page)
        rows = page.locator("tbody tr")
        assert await rows.count() == 1
        await rows.locator("a").first.focus()
        assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Texts").wait_for()
        assert "typeof" in "".join(await page.locator("ins").all_inner_texts())


async def test_who_signs_out_is_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with browser(busy_history(tmp_path), monkeypatch) as (page, base):
        await signed_in(page, base, "bob")
        assert await page.get_by_text("administrator").count() == 0
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("heading", name="Sign in").wait_for()
        await page.goto(f"{base}/history")
        assert "/sign-in" in page.url


async def test_a_page_of_another_origin_can_neither_frame_nor_send_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(busy_history(tmp_path), monkeypatch, forbidden="Executing inline script") as (page, base):
        await signed_in(page, base)
        injected = await page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
            " document.body.append(s); return window.ran === 1; }"
        )
        assert not injected
        await page.goto(
            "data:text/html,<form method=post action='" + base + "/sign-out'><button>go</button></form>"
        )
        await page.get_by_role("button").click()
        await page.get_by_text("A page of another origin may not do this.").wait_for()
        await page.goto(f"{base}/")
        await page.get_by_role("heading", name="Today", exact=True).wait_for()


async def test_a_backend_is_drained_by_keyboard_and_only_after_a_second_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(busy_history(tmp_path), monkeypatch, "phone") as (page, base):
        await signed_in(page, base)
        await page.goto(f"{base}/live")
        await painted(page)
        await page.get_by_role("button", name="Give it no more (spark-a:10000)").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Give spark-a:10000 no more sessions?").wait_for()
        await page.goto(f"{base}/live")
        assert await page.get_by_text("draining").count() == 0, "the question alone drains nothing"
        await page.go_back()
        await painted(page)
        await page.get_by_role("button", name="Give it no more sessions").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/live#backends")
        await page.get_by_text("draining").wait_for()
        await is_well(page, "live-drained")
