"""Stage rollout-viz: what the world model predicts, retraces and takes for irreversible, as numbers and pictures."""

from __future__ import annotations

from ccwm.errors import run_main
from ccwm.files import published
from ccwm.progress import counter
from ccwm.replay.store import EpisodeStore
from ccwm.studies.agents import ready_agent
from ccwm.studies.latents import advances, study_latents, write_latents
from ccwm.studies.prediction import predict_open_loop, summarise, write_prediction
from ccwm.tracking.stage import open_stage, parse_cell


def main() -> None:
    """Predict, retrace, map, measure and draw."""
    cell = parse_cell("rollout-viz")
    with open_stage(cell) as stage:
        rollout, latents = stage.settings.rollout, stage.settings.latents
        agent = ready_agent(cell.model, stage.settings.trainer)
        store = EpisodeStore(cell.data / "heldout", read_only=True)
        heldout = [store.episode(index) for index in store.eligible()]
        seed = cell.seed or 0
        prediction = predict_open_loop(agent, heldout, context=rollout.context, horizon=rollout.horizon, seed=seed)
        metrics = summarise(prediction, context=rollout.context)
        shown = rollout.context + rollout.horizon
        with counter("episodes and maps of latent states", advances(len(heldout), latents)) as advance:
            study = study_latents(agent, heldout, latents, shown=shown, seed=seed, advance=advance)
        with published(cell.results) as folder:
            write_prediction(folder, prediction, metrics, variant=cell.variant, shown=rollout.shown)
            write_latents(folder, study, variant=cell.variant)
        stage.run.log_metrics({**metrics._asdict(), **study.metrics()}, env_steps=agent.card.env_steps)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
