from __future__ import annotations

from pathlib import Path

from ccwm.report.figures import inline, panel, save, styled, variant_colours


def test_given_colours_win_and_are_not_given_twice() -> None:
    got = variant_colours(["dreamer", "ccwm", "l2"], {"ccwm": "#0072B2"})
    assert got == {"dreamer": "#d55e00", "ccwm": "#0072B2", "l2": "#009e73"}


def test_inline_figures_share_no_id() -> None:
    used = '<use xlink:href="#p" clip-path="url(#p)"/>'
    svg = f'<?xml version="1.0"?><svg xmlns:xlink="http://x" id="a"><path id="p"/>{used}</svg>'
    assert inline(svg, "one:x") == (
        '<svg id="one-x-a"><path id="one-x-p"/><use href="#one-x-p" clip-path="url(#one-x-p)"/></svg>'
    )


def test_a_figure_has_the_same_bytes_twice(tmp_path: Path) -> None:
    @styled
    def draw(folder: Path) -> str:
        folder.mkdir()
        figure, axes = panel(2.0, 1.0)
        axes.plot([0, 1], [1, 2])
        return save(figure, folder, "line")

    for folder in ("first", "second"):
        shown = draw(tmp_path / folder)
    assert shown.startswith("<svg")
    assert "currentColor" in shown
    assert {path.name for path in (tmp_path / "first").iterdir()} == {"line.svg", "line.pdf"}
    for name in ("line.svg", "line.pdf"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
