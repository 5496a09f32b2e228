from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --virtual-time-budget=2000 --enable-logging=stderr --dump-dom"
)
# clicks "Return" twice, and leaves the variants' order after each click in the title
SORT = """
<script>
const table = document.querySelector("#evaluation table");
const order = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join(" ");
const head = table.tHead.rows[0].cells[1];
head.firstElementChild.click();
const up = order() + " " + head.getAttribute("aria-sort");
head.firstElementChild.click();
document.title = up + " | " + order() + " " + head.getAttribute("aria-sort");
</script>
"""


def opened(page: Path, profile: Path) -> tuple[str, str]:
    """The document as the browser holds it once scripts have run, and its log."""
    command = [str(shutil.which("chromium")), *FLAGS.split(), f"--user-data-dir={profile}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def test_page_opens_without_complaint_and_sorts(built: Path, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text((built / "index.html").read_text("utf-8").replace("</body>", SORT + "</body>"), "utf-8")
    document, log = opened(page, tmp_path / "profile")
    assert "CONSOLE" not in log
    up, down = "random policy dreamer ccwm ascending", "ccwm dreamer random policy descending"
    assert f"<title>{up} | {down}</title>" in document


def test_a_complaint_would_be_heard(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text("<script>nothing.like.this()</script>")
    assert "CONSOLE" in opened(page, tmp_path / "profile")[1]
