"""The pages in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --mute-audio"
)
PATIENCE = 240_000.0
"""Milliseconds; a busy machine takes its time."""
NARROW, WIDE = 390, 1200
BRIGHTNESS = "(of) => of.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: `apt-get install chromium` brings one"),
]
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split(), timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser says against a page."""
    return []


@pytest.fixture
def open_page(browser: Browser, complaints: list[str]) -> Iterator[Open]:
    contexts = []

    def open_page(path: Path, *, width: int = WIDE, scheme: str = "light") -> Page:
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme, is_mobile=width < 600))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(path.resolve().as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def first_column(page: Page, table: str) -> list[str]:
    return page.locator(f"{table} tbody tr td:first-child").all_inner_texts()


def test_a_complaint_would_be_heard(open_page: Open, complaints: list[str], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<script>nothing.like.this()</script>")
    open_page(tmp_path / "index.html")
    assert "nothing is not defined" in complaints[0]


def test_tables_sort_by_click(open_page: Open, complaints: list[str], built: Path) -> None:
    page = open_page(built / "index.html")
    head = page.locator("#evaluation th").nth(1)
    up = ["random policy", "dreamer", "A3C, quoted", "ccwm", "D4PG, quoted"]
    for order, direction in ((up, "ascending"), (up[::-1], "descending")):
        head.get_by_role("button").click()
        assert first_column(page, "#evaluation table") == order
        assert head.get_attribute("aria-sort") == direction
    assert complaints == []


def test_claims_that_have_not_run_unfold_and_sort(open_page: Open, built: Path) -> None:
    page = open_page(built / "index.html")
    details = page.locator("#claims details").first
    assert details.get_attribute("open") is None
    details.locator("summary").click()
    assert details.get_attribute("open") is not None
    details.locator("th").first.get_by_role("button").click()
    printed = [text.partition("\n")[0] for text in details.locator("tbody tr td:nth-child(1)").all_inner_texts()]
    assert len(printed) > 30
    assert printed == page.evaluate("(texts) => [...texts].sort((a, b) => a.localeCompare(b))", printed)


def test_a_cell_leads_to_its_run_and_back(open_page: Open, complaints: list[str], built: Path) -> None:
    page = open_page(built / "index.html")
    page.locator("#evaluation figcaption a").first.click()
    page.wait_for_url("**/runs.html#evaluate@walker_walk-dreamer-0")
    assert page.locator("tr:target td").first.inner_text() == "evaluate@walker_walk-dreamer-0"
    page.locator("header a").click()
    page.wait_for_url("**/index.html")
    assert complaints == []


def test_the_video_plays(open_page: Open, complaints: list[str], built: Path) -> None:
    page = open_page(built / "index.html")
    time, width = page.evaluate(
        "async () => { const v = document.querySelector('video'); v.muted = true; await v.play(); "
        "await new Promise((done) => v.requestVideoFrameCallback(done)); "
        "await new Promise((done) => v.requestVideoFrameCallback(done)); return [v.currentTime, v.videoWidth]; }"
    )
    assert time > 0
    assert width == 3 * 128 + 2 * 8  # truth and two variants with gaps
    assert complaints == []


def check_look(page: Page, *, scheme: str, width: int) -> None:
    assert (
        page.evaluate("document.documentElement.scrollWidth") <= width
    )  # only tables and strips scroll, by themselves
    background, ink = (
        page.evaluate(f"({BRIGHTNESS})(getComputedStyle(document.body).{part})")
        for part in ("backgroundColor", "color")
    )
    assert (background > 600 and ink < 150) if scheme == "light" else (background < 150 and ink > 600)
    sizes = "[...document.querySelectorAll('p, td, figcaption')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
    assert min(page.evaluate(sizes)) >= 14
    axes = page.evaluate(f"[...document.querySelectorAll('svg')].map((e) => ({BRIGHTNESS})(getComputedStyle(e).color))")
    assert all(abs(colour - ink) < 80 or colour >= 250 for colour in axes)  # figures follow the page or its captions


def test_the_page_fits_a_dark_phone(open_page: Open, complaints: list[str], built: Path) -> None:
    check_look(open_page(built / "index.html", width=NARROW, scheme="dark"), scheme="dark", width=NARROW)
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "runs.html"])
@pytest.mark.parametrize("width", [WIDE, 768, NARROW, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_pages_in_both_schemes_and_all_sizes(
    open_page: Open, complaints: list[str], built: Path, scheme: str, width: int, name: str
) -> None:
    check_look(open_page(built / name, width=width, scheme=scheme), scheme=scheme, width=width)
    assert complaints == []
