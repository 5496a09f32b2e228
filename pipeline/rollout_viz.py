"""Stage rollout-viz: what the world model predicts, retraces and takes for irreversible, as numbers and pictures."""

from __future__ import annotations

from ccwm.errors import run_main
from ccwm.files import published
from ccwm.progress import counter
from ccwm.replay.store import EpisodeStore
from ccwm.studies.agents import observation_names, ready_agent
from ccwm.studies.latents import advances, study_latents, write_latents
from ccwm.studies.prediction import component_errors, predict_open_loop, summarise, write_prediction
from ccwm.studies.replay import render_heldout
from ccwm.studies.without_model import write_without_model
from ccwm.tracking.stage import open_stage, parse_cell
from ccwm.training.collect import check_collected, read_metrics


def main() -> None:
    """Predict, retrace, map, measure and draw."""
    cell = parse_cell("rollout-viz")
    with open_stage(cell) as stage:
        rollout, latents = stage.settings.rollout, stage.settings.latents
        length, seed, shown = rollout.context + rollout.horizon, cell.seed or 0, rollout.shown
        agent = ready_agent(cell, stage.settings.trainer)
        if not agent.has_world_model:
            with published(cell.results) as folder:
                write_without_model(folder)
            return
        check_collected(cell.data / "heldout", read_metrics(cell.of("collect").results).heldout)
        store = EpisodeStore(cell.data / "heldout", read_only=True)
        heldout = {number: store.episode(number) for number in store.eligible()}
        episodes, names = list(heldout.values()), observation_names(agent)
        prediction = predict_open_loop(agent, episodes, context=rollout.context, horizon=rollout.horizon, seed=seed)
        metrics, components = summarise(prediction), component_errors(prediction, names)
        frames = render_heldout(agent, heldout, length=length, shown=shown, seed=seed) if names else None
        with counter("episodes and maps of latent states", advances(len(episodes), latents)) as advance:
            study = study_latents(agent, episodes, latents, shown=length, seed=seed, advance=advance)
        with published(cell.results) as folder:
            write_prediction(folder, prediction, metrics, components, variant=cell.variant, shown=shown, frames=frames)
            write_latents(folder, study, components, variant=cell.variant)
        found = {name: value for name, value in metrics._asdict().items() if value is not None}
        stage.run.log_metrics({**found, **study.metrics()}, env_steps=agent.card.env_steps)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
