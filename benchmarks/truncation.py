"""Does the value know what cannot be undone? Truncation against the maze's truth, over η and by both rules.

    python benchmarks/truncation.py --json benchmarks/truncation.json     # trains ccwm as presets/maze.yaml says
    python benchmarks/truncation.py --agent models/maze_one_way/ccwm/0    # an agent that is there

Prints a line for each rule and η, `*` where they are the agent's own, and adds them to the JSON file. What each column
means stands in docs/results.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from ccwm.agents.export import Agent
from ccwm.files import write_json
from ccwm.machine import conditions
from ccwm.progress import counter
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.studies.agents import ready_agent
from ccwm.studies.trajectories import exploring_episodes, see
from ccwm.studies.truncation import Quality, truncation_quality
from ccwm.training.collect import collect_random
from ccwm.training.loop import Learning, train
from ccwm.training.publish import publish_agent

SHOWN = ("truncated_share", "precision", "recall", "f1", "event_precision", "event_recall", "event_f1")


def train_agent(settings: Settings, *, task: str, variant: str, seed: int, folder: Path) -> Agent:
    """Collect and train as the pipeline does, without the pipeline."""
    learning = Learning(*(getattr(settings, section) for section in Learning._fields))
    parts = {"train": settings.collect.episodes}
    with counter("random episodes", settings.collect.episodes) as advance:
        collect_random(task, folder, parts=parts, env=settings.env, render=settings.render, seed=seed, advance=advance)
    label = f"{task} {variant} seed {seed}"
    trained = train(
        learning, task=task, seed=seed, data=folder / "train", work=folder / "work", log=lambda *_: None, label=label
    )
    publish_agent(folder / "agent", trained, learning, task=task, variant=variant, seed=seed)
    return ready_agent(folder / "agent", settings.trainer)


def measure(agent: Agent, settings: Settings, *, folder: Path) -> list[Quality]:
    """Judge the mask on new random and exploring episodes of the agent's world."""
    card, heldout, exploring = agent.card, settings.collect.heldout, settings.states.episodes
    with counter("episodes", 2 * (heldout + exploring)) as advance:
        parts = {"heldout": heldout}
        collect_random(
            card.task, folder, parts=parts, env=card.env, render=card.render, seed=card.seed, advance=advance
        )
        store = EpisodeStore(folder / "heldout", read_only=True)
        episodes = [store.episode(index) for index in store.eligible()]
        episodes += exploring_episodes(agent, episodes=exploring, seed=card.seed, advance=advance)
        seen = []
        for episode in episodes:
            seen.append(see(agent, episode))
            advance()
    return truncation_quality(agent, seen, thresholds=settings.states.thresholds)


def show(rows: list[Quality]) -> None:
    """A table of all rows."""
    first = rows[0]
    print(f"{first.episodes} episodes, {first.states:,} states, {first.events} irreversible transitions")
    print("  ".join([f"{'rule':11} {'η':>8} ", *(f"{name:>15}" for name in SHOWN), f"{'detections':>10}"]))
    for row in rows:
        values = [getattr(row, name) for name in SHOWN]
        cells = [f"{'–' if value is None else format(value, '.3f'):>15}" for value in values]
        own = "*" if row.own else " "
        print("  ".join([f"{row.rule:11} {row.threshold:8.4g}{own}", *cells, f"{row.detections:10}"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=Path, help="directory of a trained agent; default: train one")
    parser.add_argument("--preset", default="maze", help="settings to train with and to take episodes and η from")
    parser.add_argument("--variant", default="ccwm", help="a variant of the preset, unless --agent is given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="add the measurements to this file")
    given = parser.parse_args()
    settings = resolve(load_preset(given.preset), given.variant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.agent:
            agent = ready_agent(given.agent, settings.trainer)
        else:
            task = settings.study.tasks[0]
            agent = train_agent(settings, task=task, variant=given.variant, seed=given.seed, folder=folder)
        rows = measure(agent, settings, folder=folder)
    show(rows)
    if given.json:
        known = json.loads(given.json.read_text())["sweeps"] if given.json.exists() else []
        write_json(given.json, {"sweeps": [*known, record(agent, rows, preset=given.preset)]})


def record(agent: Agent, rows: list[Quality], *, preset: str) -> dict[str, Any]:
    card = agent.card
    return {
        "preset": preset,
        "machine": conditions(1),
        "task": card.task,
        "variant": card.variant,
        "seed": card.seed,
        "env_steps": card.env_steps,
        "updates": card.updates,
        "truncation": card.truncation.model_dump(),
        "rows": [row._asdict() for row in rows],
    }


if __name__ == "__main__":
    main()
