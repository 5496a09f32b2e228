"""Stage evaluate: greedy returns of a trained agent on fixed seeds, beside the random policy's."""

from __future__ import annotations

import csv

from ccwm.errors import run_main
from ccwm.files import published, write_csv, write_json
from ccwm.progress import counter
from ccwm.studies.agents import ready_agent
from ccwm.studies.returns import best_possible, greedy_returns, summarise
from ccwm.tracking.stage import open_stage, parse_cell


def main() -> None:
    """Play greedy episodes and compare."""
    cell = parse_cell("evaluate")
    with open_stage(cell) as stage:
        agent = ready_agent(cell.model, stage.settings.trainer)
        episodes = stage.settings.evaluate.episodes
        with counter("greedy episodes", episodes) as advance:
            rows = greedy_returns(agent, episodes=episodes, seed=cell.seed, advance=advance)
        with (cell.of("collect").results / "returns.csv").open() as file:
            chance = [{**row, "policy": "random"} for row in csv.DictReader(file)]
        random_returns = [float(row["return"]) for row in chance]
        metrics = summarise(rows, random_returns, best=best_possible(cell.task, agent.card.env.time_limit))
        with published(cell.results) as folder:
            write_json(folder / "metrics.json", metrics)
            write_csv(folder / "returns.csv", [*(row.row() for row in rows), *chance])
        stage.run.log_metrics(
            {name: value for name, value in metrics.items() if value is not None}, env_steps=agent.card.env_steps
        )
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
