"""Stage collect: the random episodes that every variant of a task and seed starts from."""

from __future__ import annotations

from ccwm.errors import run_main
from ccwm.files import published, write_csv, write_json
from ccwm.progress import counter
from ccwm.training.collect import collect_random, summarise


def main() -> None:
    """Play random episodes and store them."""
    from ccwm.tracking.stage import open_stage, parse_cell  # here, because workers import this file and need no MLflow

    cell = parse_cell("collect", variants=False)
    assert cell.seed is not None
    with open_stage(cell) as stage:
        settings = stage.settings
        parts = {"train": settings.collect.episodes, "heldout": settings.collect.heldout}
        with published(cell.data) as folder, counter("random episodes", sum(parts.values())) as advance:
            rows = collect_random(
                cell.task,
                folder,
                parts=parts,
                env=settings.env,
                seed=cell.seed,
                advance=advance,
                workers=settings.collect.workers,
            )
        metrics = summarise(rows)
        with published(cell.results) as folder:
            write_json(folder / "metrics.json", metrics)
            write_csv(folder / "returns.csv", (row.row() for row in rows))
        stage.run.log_metrics(metrics, env_steps=int(metrics["env_steps"]))


if __name__ == "__main__":
    run_main(main)
