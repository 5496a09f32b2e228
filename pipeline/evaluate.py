"""Stage evaluate: greedy returns of a trained agent on fixed seeds, beside the random policy's."""

from __future__ import annotations

from ccwm.errors import run_main
from ccwm.files import published
from ccwm.fleet.actors import start_workers
from ccwm.progress import counter
from ccwm.studies.agents import ready_agent
from ccwm.studies.returns import best_possible, greedy_returns, summarise, write_evaluation
from ccwm.training.collect import read_returns


def main() -> None:
    """Play greedy episodes and compare."""
    from ccwm.tracking.stage import open_stage, parse_cell  # here, because actors import this file and need no MLflow

    cell = parse_cell("evaluate")
    with open_stage(cell) as stage:
        agent = ready_agent(cell, stage.settings.trainer)
        episodes = stage.settings.evaluate.episodes
        with counter("greedy episodes", episodes) as advance:
            rows = greedy_returns(
                agent,
                exported=cell.model,
                episodes=episodes,
                seed=cell.seed or 0,
                advance=advance,
                start_workers=start_workers,
            )
        random = read_returns(cell.of("collect").results)
        best = best_possible(cell.task, agent.card.config.env.time_limit)
        metrics = summarise(rows, random["return"].tolist(), best=best)
        with published(cell.results) as folder:
            write_evaluation(folder, metrics, rows, random)
        measured = {name: value for name, value in metrics._asdict().items() if value is not None}
        stage.run.log_metrics(measured, env_steps=agent.card.env_steps)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
