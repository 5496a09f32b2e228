"""Stage evaluate: greedy returns of a trained agent on fixed seeds, beside the random policy's."""

from __future__ import annotations

import csv

from ccwm.files import published, write_csv, write_json
from ccwm.progress import counter
from ccwm.refusal import run_main
from ccwm.stage import open_stage, parse_item
from ccwm.studies.agents import ready_agent
from ccwm.studies.returns import best_possible, greedy_returns, summarise


def main() -> None:
    """Play greedy episodes and compare."""
    item = parse_item("evaluate")
    with open_stage(item) as stage:
        agent = ready_agent(item.model, stage.settings.trainer)
        episodes = stage.settings.evaluate.episodes
        with counter("greedy episodes", episodes) as advance:
            rows = greedy_returns(agent, episodes=episodes, seed=item.seed, advance=advance)
        with (item.random_results / "returns.csv").open() as file:
            chance = [{**row, "policy": "random"} for row in csv.DictReader(file)]
        random_returns = [float(row["return"]) for row in chance]
        metrics = summarise(rows, random_returns, best=best_possible(item.task, agent.card.env.time_limit))
        with published(item.results) as folder:
            write_json(folder / "metrics.json", metrics)
            write_csv(folder / "returns.csv", [*(row.row() for row in rows), *chance])
        stage.run.log_metrics(
            {name: value for name, value in metrics.items() if value is not None}, env_steps=agent.card.env_steps
        )
        stage.run.log_artifact(item.results)


if __name__ == "__main__":
    run_main(main)
