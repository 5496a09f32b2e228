"""Stage train: one agent, from the random episodes to the end of its budget; a killed run goes on where it was."""

from __future__ import annotations

import shutil

from ccwm.refusal import run_main
from ccwm.stage import open_stage, parse_item, stage_settings
from ccwm.training.publish import publish_agent, publish_history, summarise
from ccwm.training.run import Learning, train
from ccwm.training.workplace import exclusive, work_directory


def main() -> None:
    """Train, publish, then leave the work directory."""
    item = parse_item("train")
    work = work_directory(stage_settings(item), task=item.task, variant=item.variant, seed=item.seed, data=item.data)
    with exclusive(work):
        with open_stage(item, work=work) as stage:
            settings = stage.settings
            learning = Learning(*(getattr(settings, section) for section in Learning._fields))
            trained = train(
                learning,
                task=item.task,
                seed=item.seed,
                data=item.data / "train",
                work=work,
                log=lambda metrics, env_steps: stage.run.log_metrics(metrics, env_steps=env_steps),
                label=f"{item.task} {item.variant}",
            )
            counters = trained.module.counters
            metrics = summarise(trained.history, counters)
            publish_agent(item.model, trained, learning, task=item.task, variant=item.variant, seed=item.seed)
            publish_history(item.results, trained.history, metrics)
            stage.cost.update(trained.cost._asdict())
            stage.run.log_metrics(
                {f"final/{name}": value for name, value in metrics.items()}, env_steps=counters.env_steps
            )
            stage.run.log_metrics(trained.cost.numbers(), env_steps=counters.env_steps)
            stage.run.log_artifact(item.results)
            stage.run.log_agent(item.model, image_size=learning.env.size, actions=trained.module.learner.actions)
        shutil.rmtree(work)


if __name__ == "__main__":
    run_main(main)
