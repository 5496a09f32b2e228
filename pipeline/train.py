"""Stage train: one agent, from the random episodes to the end of its budget; a killed run resumes where it was."""

from __future__ import annotations

import shutil

from ccwm.errors import run_main
from ccwm.fleet.actors import start_workers
from ccwm.tracking.stage import open_stage, parse_cell, stage_settings
from ccwm.training.collect import check_collected, read_metrics
from ccwm.training.devices import is_main_process
from ccwm.training.history import summarise, write_history
from ccwm.training.loop import follow, train
from ccwm.training.publish import publish_agent
from ccwm.training.work_directory import exclusive, work_directory


def main() -> None:
    """Train, publish, then remove the work directory."""
    cell = parse_cell("train")
    settings = stage_settings(cell)
    work = work_directory(settings, cell)
    if not is_main_process():  # one of the processes that share a batch
        follow(settings.agent_config, cell, work=work)
        return
    check_collected(cell.data / "train", read_metrics(cell.of("collect").results).episodes)
    with exclusive(work):
        with open_stage(cell, work=work) as stage:
            trained = train(
                settings.agent_config,
                cell,
                data=cell.data / "train",
                work=work,
                log=lambda metrics, env_steps: stage.run.log_metrics(metrics, env_steps=env_steps),
                label=f"{cell.task} {cell.variant}",
                start_workers=start_workers,
            )
            env_steps, metrics = trained.module.counters.env_steps, summarise(trained.history, trained.module.counters)
            publish_agent(cell.model, trained, cell)
            write_history(cell.results, trained.history, metrics)
            stage.cost.update(trained.cost._asdict())
            stage.run.log_metrics({f"final/{name}": value for name, value in metrics.items()}, env_steps=env_steps)
            stage.run.log_metrics(trained.cost.numbers(), env_steps=env_steps)
            stage.run.log_artifact(cell.results)
            stage.run.log_agent(cell.model)
        shutil.rmtree(work)


if __name__ == "__main__":
    run_main(main)
