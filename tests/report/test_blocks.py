from __future__ import annotations

from ccwm.cells import Cell
from ccwm.report.blocks import cell_groups


def test_cells_are_grouped_by_all_but_their_seed() -> None:
    seeds = [Cell("train", "walker_walk", "ccwm", seed) for seed in (0, 10)]
    groups = cell_groups([*seeds, Cell("collect", "walker_walk", seed=0)])
    assert {start: [cell.seed for cell in of] for start, of in groups.items()} == {
        "train@walker_walk-ccwm-": [0, 10],
        "collect@walker_walk-": [0],
    }
