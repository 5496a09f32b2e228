from __future__ import annotations

import pandas as pd

from ccwm.report.blocks import Panels, Picture, Table
from ccwm.report.latents import SECTION
from ccwm.report.section import Report

from .results_tree import one, texts


def test_maps_have_their_numbers_beside_them(report: Report) -> None:
    blocks = SECTION.build(report)
    assert one(blocks, Picture).file == "values-walker_walk"
    files = [[picture.file for picture in block.shown] for block in blocks if isinstance(block, Panels)]
    assert files == [[f"{name}-walker_walk-{variant}" for name in ("trajectory", "late", "truncated")]
                     for variant in ("dreamer", "ccwm")]  # fmt: skip
    assert texts(one(blocks, Table), "ccwm") == [
        ["ccwm", "trajectory", "80", "0.975", "0.625", "0.500", "0.250", "–", "–"],
        ["ccwm", "its end", "24", "0.975", "0.625", "0.500", "0.250", "–", "–"],
        ["ccwm", "many states", "150", "0.975", "–", "–", "–", "0.875", "0.750"],
    ]
    written = pd.read_csv(report.folder / "tables" / "embeddings.csv")
    assert len(written) == 6
    assert set(written["cells"]) == {f"rollout-viz@walker_walk-{variant}-0" for variant in ("dreamer", "ccwm")}
