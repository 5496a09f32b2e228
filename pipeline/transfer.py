"""Stage transfer: the trained agent, without further learning, in changed environments."""

from __future__ import annotations

from ccwm.errors import run_main
from ccwm.files import published
from ccwm.progress import counter
from ccwm.studies.agents import ready_agent
from ccwm.studies.transfer import summarise, transfer_returns, write_transfer
from ccwm.tracking.stage import open_stage, parse_cell


def main() -> None:
    """Play greedy episodes in every changed environment."""
    cell = parse_cell("transfer")
    with open_stage(cell) as stage:
        settings = stage.settings.transfer
        agent = ready_agent(cell, stage.settings.trainer)
        with counter("changed environments", settings.draws * (len(settings.rows) + 1)) as advance:
            results = transfer_returns(agent, settings, seed=cell.seed or 0, advance=advance)
        metrics = summarise(results)
        with published(cell.results) as folder:
            write_transfer(folder, metrics, results)
        means = {f"transfer/{name.replace('+', '-')}": row.mean for name, row in metrics.rows.items()}
        stage.run.log_metrics(means, env_steps=agent.card.env_steps)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
