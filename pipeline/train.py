"""Stage train: one agent, from the random episodes to the end of its budget; a killed run goes on where it was."""

from __future__ import annotations

import shutil

from ccwm.errors import run_main
from ccwm.tracking.stage import open_stage, parse_cell, stage_settings
from ccwm.training.loop import Learning, train
from ccwm.training.publish import publish_agent, publish_history, summarise
from ccwm.training.work_directory import exclusive, work_directory


def main() -> None:
    """Train, publish, then leave the work directory."""
    cell = parse_cell("train")
    work = work_directory(stage_settings(cell), task=cell.task, variant=cell.variant, seed=cell.seed, data=cell.data)
    with exclusive(work):
        with open_stage(cell, work=work) as stage:
            settings = stage.settings
            learning = Learning(*(getattr(settings, section) for section in Learning._fields))
            trained = train(
                learning,
                task=cell.task,
                seed=cell.seed,
                data=cell.data / "train",
                work=work,
                log=lambda metrics, env_steps: stage.run.log_metrics(metrics, env_steps=env_steps),
                label=f"{cell.task} {cell.variant}",
            )
            counters = trained.module.counters
            metrics = summarise(trained.history, counters)
            publish_agent(cell.model, trained, learning, task=cell.task, variant=cell.variant, seed=cell.seed)
            publish_history(cell.results, trained.history, metrics)
            stage.cost.update(trained.cost._asdict())
            stage.run.log_metrics(
                {f"final/{name}": value for name, value in metrics.items()}, env_steps=counters.env_steps
            )
            stage.run.log_metrics(trained.cost.numbers(), env_steps=counters.env_steps)
            stage.run.log_artifact(cell.results)
            stage.run.log_agent(cell.model, image_size=learning.env.size, actions=trained.module.learner.actions)
        shutil.rmtree(work)


if __name__ == "__main__":
    run_main(main)
