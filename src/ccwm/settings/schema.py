"""All of ``params.yaml``: the agent's sections, and those of the stages around it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, JsonValue

from ccwm.settings.agent import AgentConfig
from ccwm.settings.section import COLOUR, Fraction, Name, PositiveFloat, Section, Seed, VariantName
from ccwm.settings.tune import Tune

Component = Literal["R", "M", "F", "S", "L"]


T = TypeVar("T")


def _no_repeats(values: list[T]) -> list[T]:
    if len(set(values)) != len(values):
        raise ValueError("must not name one twice")
    return values


Different = Annotated[list[T], Field(min_length=1), AfterValidator(_no_repeats)]
"""One or more values, each at most once."""


class Study(Section):
    """What is compared: every stage runs once for each task × variant × seed."""

    tasks: Different[Name]
    """Environments by name: `walker_walk`, `maze_two_rooms`, `gym:Pendulum-v1`, `my_module:MyEnv`."""
    variants: Different[VariantName]
    """Which entries of `variants` are trained."""
    seeds: Different[Seed]
    """Seeds of every random stream; variants of one seed share their first data."""


class Collect(Section):
    """The random episodes that every variant starts from."""

    episodes: int = Field(5, ge=1, le=100_000)
    """Random episodes that open the replay memory."""
    heldout: int = Field(5, ge=1, le=1000)
    """Random episodes kept aside for open-loop prediction; they are never trained on."""
    workers: int = Field(1, ge=1, le=256)
    """Environments that play at the same time, each in a process of its own if several; it changes no result."""


class Evaluate(Section):
    """Greedy returns of the trained agent."""

    episodes: int = Field(10, ge=1, le=10_000)
    """Greedy episodes; their seeds are the same for every variant."""


class Rollout(Section):
    """Open-loop prediction on the held-out episodes."""

    context: int = Field(5, ge=1, le=1000)
    """Observations that the model sees first."""
    horizon: int = Field(45, ge=1, le=1000)
    """Steps that it then predicts from actions alone."""
    shown: int = Field(1, ge=1, le=16)
    """Episodes that are drawn, as pictures and a video; all held-out ones are measured."""


class Latents(Section):
    """The latent states along episodes: maps of them, and truncation against the environment's truth."""

    episodes: int = Field(20, ge=0, le=1000)
    """New episodes of the exploring agent that are studied beside the held-out ones."""
    mapped: int = Field(10_000, ge=10, le=100_000)
    """States in the map that is coloured by value, drawn from all these episodes; all where there are fewer."""
    trajectory: int = Field(500, ge=2, le=10_000)
    """Steps of a greedy episode that are mapped with their retraced states; all where there are fewer."""
    late: int = Field(76, ge=2, le=10_000)
    """The last of these steps, mapped on their own."""
    perplexity: float = Field(30.0, gt=1, le=1000)
    """t-SNE's perplexity, about the number of neighbours that a state keeps; cut to a third of the states."""
    neighbours: int = Field(10, ge=1, le=1000)
    """k, the size of the neighbourhoods that the numbers beside the maps compare."""
    thresholds: list[PositiveFloat] = Field([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0], min_length=1)
    """Values of η at which truncation is compared with the environment's truth."""


class Transfer(Section):
    """Zero-shot transfer: the trained agent in changed environments."""

    rows: list[Different[Component]] = Field(min_length=1)
    """Combinations of changes: R reward, M mass, F friction, S stiffness, L layout of a maze."""
    draws: int = Field(3, ge=1, le=1000)
    """Changed environments drawn for each row, one episode in each; the same for every variant."""
    units: Literal["factor", "absolute"] = "factor"
    """Whether mass, friction and stiffness multiply the environment's own values or replace them."""
    reward: list[PositiveFloat] = Field([2.0], min_length=1)
    """Factors of the reward; returns are reported in the original scale."""
    mass: list[PositiveFloat] = Field([0.5, 1.5], min_length=1)
    """Total masses (kg, or factors)."""
    friction: list[tuple[PositiveFloat, PositiveFloat, PositiveFloat]] = Field([(1.5, 4.0, 3.0)], min_length=1)
    """Sliding, torsional and rolling friction (or factors)."""
    stiffness: list[PositiveFloat] = Field([0.5, 1.5], min_length=1)
    """Joint stiffness (of the model's default joint, or factors of every joint's)."""
    layouts: list[Name] = Field(["two_rooms"], min_length=1)
    """Maze layouts to be moved to."""


class Report(Section):
    """How results are shown."""

    title: str = Field("Learning via retracing", min_length=1, max_length=200)
    """Heading of the page."""
    colours: dict[VariantName, Annotated[str, Field(pattern=COLOUR)]] = Field({})
    """Colour of a variant, as #rrggbb; others follow a colour-blind safe order."""
    target_score: Fraction = 0.5
    """Score whose first reaching on the learning curve is timed: 0 is the random policy, 1 the best possible return."""


class Tracking(Section):
    """Where MLflow keeps runs; MLFLOW_TRACKING_URI moves the store."""

    experiment: Name = "ccwm"
    """MLflow experiment that all runs belong to."""
    timeout: float = Field(10.0, gt=0, le=600)
    """Seconds that a stage waits at its end for a store that does not answer; the rest stays on disk."""


class Settings(AgentConfig):
    """Every key of `params.yaml`.

    `ccwm params docs --write` generates the page of all keys from `src/ccwm/settings/`: edit the sources, not the page.
    `ccwm params check` checks a file, and `docs/params.schema.json` lets an editor check it while you type.

    A file must name every key, so that no result depends on a default in the code. The default is the paper's value
    wherever the paper names one; where it differs, the sentence says so.
    "Environment steps" are simulator frames: actions × `env.action_repeat`.
    """

    study: Study
    variants: dict[VariantName, dict[str, JsonValue]] = Field(min_length=1)
    """Named overrides: `dreamer: {retrace.weight: 0}`."""
    collect: Collect
    evaluate: Evaluate
    rollout: Rollout
    latents: Latents
    transfer: Transfer
    report: Report
    tracking: Tracking
    tune: Tune

    @property
    def agent_config(self) -> AgentConfig:
        """The sections that decide an agent, alone."""
        return AgentConfig(**{name: getattr(self, name) for name in AgentConfig.model_fields})
