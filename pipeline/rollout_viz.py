"""Stage rollout-viz: what the world model predicts, retraces and takes for irreversible, as numbers and pictures."""

from __future__ import annotations

from safetensors.numpy import save_file

from ccwm.errors import run_main
from ccwm.files import published, write_csv, write_json
from ccwm.progress import counter
from ccwm.replay.store import EpisodeStore
from ccwm.studies.agents import ready_agent
from ccwm.studies.embeddings import write_embeddings
from ccwm.studies.images import write_mp4, write_png
from ccwm.studies.pictures import film, strip
from ccwm.studies.prediction import horizon_rows, predict_open_loop, step_rows, summarise
from ccwm.studies.retracing import write_retracing
from ccwm.studies.states import PIECES, study_states
from ccwm.tracking.stage import open_stage, parse_cell

STRIP_EVERY = 5


def main() -> None:
    """Predict, retrace, map, measure and draw."""
    cell = parse_cell("rollout-viz")
    with open_stage(cell) as stage:
        rollout, states = stage.settings.rollout, stage.settings.states
        agent = ready_agent(cell.model, stage.settings.trainer)
        store = EpisodeStore(cell.data / "heldout", read_only=True)
        heldout = [store.episode(index) for index in store.eligible()]
        prediction = predict_open_loop(agent, heldout, context=rollout.context, horizon=rollout.horizon, seed=cell.seed)
        metrics = summarise(prediction, context=rollout.context)
        with counter("episodes and maps of states", len(heldout) + 2 * states.episodes + PIECES) as advance:
            study = study_states(
                agent, heldout, states, shown=rollout.context + rollout.horizon, seed=cell.seed, advance=advance
            )
        with published(cell.results) as folder:
            write_json(folder / "metrics.json", metrics)
            write_csv(folder / "errors.csv", step_rows(prediction))
            write_csv(folder / "horizons.csv", horizon_rows(prediction))
            shown = slice(0, rollout.shown)
            frames = {"truth": prediction.truth[shown], "prediction": prediction.predicted[shown]}
            save_file(frames, folder / "frames.safetensors")
            write_png(folder / "strip.png", strip(prediction, 0, every=STRIP_EVERY))
            write_mp4(folder / "rollout.mp4", film(prediction, 0))
            write_retracing(folder, study.retracing)
            write_embeddings(folder, study.embeddings, variant=cell.variant)
            write_csv(folder / "truncation.csv", (row._asdict() for row in study.truncation))
        stage.run.log_metrics({**metrics, **study.metrics()}, env_steps=agent.card.env_steps)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
