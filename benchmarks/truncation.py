"""Does the value know what cannot be undone? Truncation against the maze's truth, over η and by both rules.

    python benchmarks/truncation.py --json benchmarks/truncation.json     # trains ccwm on one-way doors
    python benchmarks/truncation.py --agent models/maze_one_way/ccwm/0    # an existing agent

Prints a line for each rule and η, `*` where they are the agent's own, and adds them to the JSON file. docs/results.md
explains the columns.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import append_json, collect, conditions, make_parser, train_cell

from ccwm.agents.export import Agent, load_agent
from ccwm.cells import Cell
from ccwm.progress import counter
from ccwm.replay.store import EpisodeStore
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.studies.agents import on_device, ready_agent
from ccwm.studies.trajectories import exploring_episodes, see
from ccwm.studies.truncation import Quality, truncation_quality

SHOWN = ("truncated_share", "precision", "recall", "f1", "event_precision", "event_recall", "event_f1")
IDENTITY = {"task", "variant", "seed", "env_steps", "updates"}


def train_agent(settings: Settings, cell: Cell, root: Path) -> Agent:
    """Collect and train as the pipeline does, without the pipeline."""
    collect(settings, cell, root / cell.data, "train")
    train_cell(settings, cell, data=root / cell.data, root=root)
    return ready_agent(cell, settings.trainer, root)


def measure(agent: Agent, settings: Settings, root: Path) -> list[Quality]:
    """Compare the mask with the truth on new random and exploring episodes of the agent's environment."""
    card = agent.card
    cell = Cell("train", card.task, card.variant, card.seed)
    collect(settings.model_copy(update={"env": card.config.env}), cell, root, "heldout")
    store = EpisodeStore(root / "heldout", read_only=True)
    episodes = [store.episode(index) for index in store.eligible()]
    with counter("exploring episodes", settings.latents.episodes) as advance:
        episodes += exploring_episodes(agent, episodes=settings.latents.episodes, seed=card.seed, advance=advance)
    seen = []
    with counter("episodes as the agent sees them", len(episodes)) as advance:
        for episode in episodes:
            seen.append(see(agent, episode))
            advance()
    return truncation_quality(agent, seen, thresholds=settings.latents.thresholds)


def show(rows: list[Quality]) -> None:
    """A table of all rows."""
    first = rows[0]
    print(f"{first.episodes} episodes, {first.states:,} states, {first.events} irreversible transitions")
    print("  ".join([f"{'rule':11} {'η':>8} ", *(f"{name:>15}" for name in SHOWN), f"{'detections':>10}"]))
    for row in rows:
        values = [getattr(row, name) for name in SHOWN]
        columns = [f"{'–' if value is None else format(value, '.3f'):>15}" for value in values]
        own = "*" if row.own else " "
        print("  ".join([f"{row.rule:11} {row.threshold:8.4g}{own}", *columns, f"{row.detections:10}"]))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--agent", type=Path, help="directory of a trained agent; default: train one")
    parser.add_argument("--preset", default="maze-one-way", help="settings to train with, and of episodes and η")
    parser.add_argument("--variant", default="ccwm", help="a variant of the preset, unless --agent is given")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    settings = resolve(load_preset(given.preset), given.variant)
    facts = conditions(settings.trainer.threads)
    with tempfile.TemporaryDirectory() as folder:
        if given.agent:
            agent = on_device(load_agent(given.agent), settings.trainer)
        else:
            cell = Cell("train", settings.study.tasks[0], given.variant, given.seed)
            agent = train_agent(settings, cell, Path(folder))
        rows = measure(agent, settings, Path(folder))
    show(rows)
    if given.json:
        card = agent.card
        about = {"preset": given.preset, "machine": facts, **card.model_dump(include=IDENTITY)}
        about["truncation"] = card.config.truncation.model_dump()
        append_json(given.json, "sweeps", {**about, "rows": [row._asdict() for row in rows]})


if __name__ == "__main__":
    main()
