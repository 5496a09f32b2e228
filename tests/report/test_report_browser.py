from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, chromium

pytestmark = pytest.mark.timeout(900)

ORDER = "[...document.querySelectorAll('#evaluation tbody tr')].map((row) => row.cells[0].textContent)"
HEAD = "#evaluation th:nth-child(2)"
NARROW = 375


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def test_a_complaint_would_be_heard(tab: Tab, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text("<script>nothing.like.this()</script>")
    tab.open(page)
    assert "nothing is not defined" in str(tab.complaints)


def test_tables_sort_by_click(tab: Tab, built: Path) -> None:
    tab.open(built / "index.html")
    tab.click(f"{HEAD} button")
    up = ["random policy", "dreamer", "A3C, quoted", "ccwm", "D4PG, quoted"]
    assert tab.run(ORDER) == up
    assert tab.run(f"document.querySelector('{HEAD}').getAttribute('aria-sort')") == "ascending"
    tab.click(f"{HEAD} button")
    assert tab.run(ORDER) == up[::-1]
    assert tab.complaints == []


def test_claims_that_have_not_run_unfold_and_sort(tab: Tab, built: Path) -> None:
    tab.open(built / "index.html")
    assert not tab.run("document.querySelector('#claims details').open")
    tab.click("#claims details summary")
    assert tab.run("document.querySelector('#claims details').open")
    tab.click("#claims details th:nth-child(3) button")
    printed = tab.run(
        "[...document.querySelectorAll('#claims details tbody tr')].map((row) => row.cells[2].textContent)"
    )
    assert len(printed) > 30
    assert printed == tab.run(f"{list(printed)!r}.sort((a, b) => a.localeCompare(b))")


def test_the_film_plays(tab: Tab, built: Path) -> None:
    tab.open(built / "index.html")
    playing = tab.run(
        "(async () => { const v = document.querySelector('video'); v.muted = true; await v.play(); "
        "await new Promise((done) => v.requestVideoFrameCallback(done)); "
        "await new Promise((done) => v.requestVideoFrameCallback(done)); return [v.currentTime, v.videoWidth]; })()"
    )
    assert playing[0] > 0
    assert playing[1] == 3 * 128 + 2 * 8  # truth and two variants with gaps
    assert tab.complaints == []


@pytest.mark.parametrize("width", [1100, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_and_a_phone(tab: Tab, built: Path, scheme: str, width: int) -> None:
    tab.open(built / "index.html", width=width, scheme=scheme)
    assert tab.complaints == []
    assert tab.run("document.documentElement.scrollWidth") <= width  # only tables and strips scroll, by themselves
    brightness = "(c) => c.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"
    page, ink = (
        tab.run(f"({brightness})(getComputedStyle(document.body).{part})") for part in ("backgroundColor", "color")
    )
    assert (page > 600 and ink < 150) if scheme == "light" else (page < 150 and ink > 600)
    axes = tab.run(f"({brightness})(getComputedStyle(document.querySelector('#learning svg')).color)")
    assert axes == ink  # figures follow the page
    smallest = tab.run(
        "Math.min(...[...document.querySelectorAll('p, td')].map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 14
