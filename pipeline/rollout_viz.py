"""Stage rollout-viz: open-loop prediction on the held-out episodes, as numbers, a strip and a film."""

from __future__ import annotations

from safetensors.numpy import save_file

from ccwm.data.store import EpisodeStore
from ccwm.files import published, write_csv, write_json
from ccwm.refusal import run_main
from ccwm.stage import open_stage, parse_item
from ccwm.studies.agents import ready_agent
from ccwm.studies.images import write_mp4, write_png
from ccwm.studies.pictures import film, strip
from ccwm.studies.prediction import horizon_rows, predict_open_loop, step_rows, summarise

STRIP_EVERY = 5


def main() -> None:
    """Predict, measure and draw."""
    item = parse_item("rollout-viz")
    with open_stage(item, renders=False) as stage:
        rollout = stage.settings.rollout
        agent = ready_agent(item.model, stage.settings.trainer)
        store = EpisodeStore(item.data / "heldout", read_only=True)
        prediction = predict_open_loop(
            agent,
            [store.episode(index) for index in store.eligible()],
            context=rollout.context,
            horizon=rollout.horizon,
            seed=item.seed,
        )
        metrics = summarise(prediction, context=rollout.context)
        with published(item.results) as folder:
            write_json(folder / "metrics.json", metrics)
            write_csv(folder / "errors.csv", step_rows(prediction))
            write_csv(folder / "horizons.csv", horizon_rows(prediction))
            shown = slice(0, rollout.shown)
            frames = {"truth": prediction.truth[shown], "prediction": prediction.predicted[shown]}
            save_file(frames, folder / "frames.safetensors")
            write_png(folder / "strip.png", strip(prediction, 0, every=STRIP_EVERY))
            write_mp4(folder / "rollout.mp4", film(prediction, 0))
        stage.run.log_metrics(metrics, env_steps=agent.card.env_steps)
        stage.run.log_artifact(item.results)


if __name__ == "__main__":
    run_main(main)
