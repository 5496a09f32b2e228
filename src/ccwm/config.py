"""Every setting: frozen, strict pydantic sections, each field with its bounds and a sentence.

Maths never sees these classes; it takes values. How ``params.yaml`` becomes them is in ``params.py``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}$"
VARIANT = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$"
COLOUR = r"^#[0-9a-fA-F]{6}$"
DOTTED = r"^[a-z_]+\.[a-z_]+$"
STORAGE = r"^postgresql(\+psycopg)?://.+$"

Name = Annotated[str, Field(pattern=NAME)]
"""A task, layout or experiment name: it becomes part of paths, so it cannot hold a slash or start with a dot."""

VariantName = Annotated[str, Field(pattern=VARIANT)]
"""A variant's name: DVC follows `variants.<name>` dot by dot, so it cannot hold a dot."""

Key = Annotated[str, Field(pattern=DOTTED)]
"""A setting as `section.field`."""

Fraction = Annotated[float, Field(ge=0, le=1)]
LearningRate = Annotated[float, Field(gt=0, le=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Component = Literal["R", "M", "F", "S", "L"]


def _different(row: list[Component]) -> list[Component]:
    if len(set(row)) != len(row):
        raise ValueError("must name different changes")
    return row


Row = Annotated[list[Component], Field(min_length=1), AfterValidator(_different)]
"""A combination of changes, each at most once."""


class Section(BaseModel):
    """A frozen group of settings that refuses unknown keys, wrong types, inf and NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Study(Section):
    """What is compared: every stage runs once for each task × variant × seed."""

    tasks: list[Name] = Field(min_length=1)
    """Worlds by name: `walker_walk`, `maze_two_rooms`, `gym:Pendulum-v1`, `my_module:MyEnv`."""
    variants: list[VariantName] = Field(min_length=1)
    """Which entries of `variants` are trained."""
    seeds: list[Seed] = Field(min_length=1)
    """Seeds of every random stream; variants of one seed share their first data."""


class Env(Section):
    """How a world is seen and stepped."""

    size: Literal[32, 64] = 64
    """Height and width of the image in pixels."""
    action_repeat: int = Field(2, ge=1, le=16)
    """Simulator frames for each action of the agent."""
    time_limit: int = Field(1000, ge=10, le=1_000_000)
    """Environment steps (simulator frames) after which an episode is cut off, which is no termination."""


class Render(Section):
    """How MuJoCo draws pixels."""

    quality: Literal["fast", "full"] = "full"
    """`full` is dm_control's own picture; `fast` leaves out shadows, reflections and multisampling."""


class Collect(Section):
    """The random episodes that every variant starts from."""

    episodes: int = Field(5, ge=1, le=100_000)
    """Random episodes that open the replay memory."""
    heldout: int = Field(5, ge=1, le=1000)
    """Random episodes kept aside for open-loop prediction; they are never trained on."""
    workers: int = Field(1, ge=1, le=256)
    """Environments that play at the same time, each in a process of its own if several; it changes no result."""


class Replay(Section):
    """How training windows are drawn from the episodes."""

    sampling: Literal["steps", "episodes"] = "episodes"
    """`episodes` draws an episode, then a start (Dreamer's way); `steps` draws uniformly over all stored windows."""
    capacity: int = Field(2_000_000, ge=1000)
    """Environment steps kept; the oldest episodes beyond it are no longer drawn."""


class Model(Section):
    """The world model: encoder, RSSM, decoder and heads."""

    depth: int = Field(32, ge=1, le=256)
    """Channels of the first convolution; each later layer doubles them."""
    deter: int = Field(256, ge=1, le=8192)
    """Units of the GRU, the deterministic part of a state."""
    stoch: int = Field(32, ge=1, le=1024)
    """Dimensions of the Gaussian part of a state."""
    hidden: int = Field(256, ge=1, le=8192)
    """Units of the dense layers inside the RSSM."""
    activation: Literal["relu", "elu"] = "relu"
    """Activation of the RSSM's dense layers: the paper's ReLU, or Dreamer's ELU, faster to learn in small networks."""
    first_weights: Literal["glorot", "torch"] = "glorot"
    """How every layer of the agent begins: as in TensorFlow, or with torch's smaller weights, which dream less."""
    min_std: float = Field(0.1, gt=0, le=10)
    """Added to softplus, so that no latent Gaussian collapses."""
    reward_layers: int = Field(2, ge=1, le=8)
    """Hidden layers of the reward head."""
    reward_units: int = Field(512, ge=1, le=8192)
    """Units of each hidden layer of the reward and continue heads."""
    free_nats: float = Field(3.0, ge=0)
    """The averaged KL costs nothing below this many nats."""
    kl_scale: float = Field(1.0, ge=0)
    """β, the weight of the KL term."""
    image_scale: float = Field(1.0, gt=0)
    """Weight of the image term; 1 is a unit-variance Gaussian on pixels in [-0.5, 0.5]."""
    reward_scale: float = Field(1.0, gt=0)
    """Weight of the reward term."""
    continues: bool = False
    """Whether a head predicts termination; only for worlds whose episodes terminate."""


class Retrace(Section):
    """Learning via retracing: from each state back to the one before it."""

    weight: float = Field(1.0, ge=0)
    """λ, the scale of the cycle term; 0 is exactly the Dreamer baseline, and nothing of retracing is computed."""
    loss: Literal["bisimulation", "l2", "reconstruction"] = "bisimulation"
    """How the retraced state is compared with the original one."""
    horizon: int = Field(1, ge=1, le=50)
    """K, how many steps a chain walks back."""
    samples: int = Field(1, ge=1, le=64)
    """Draws of each retraced state that the loss is averaged over."""
    reverse_action: Literal["joint", "separate"] = "joint"
    """Whether ρ learns with the world model, or on its own optimiser with the world model held still."""
    reverse_units: int = Field(256, ge=1, le=8192)
    """Units of each of the two hidden layers of ρ."""
    detach: Literal["none", "original"] = "none"
    """`original` holds the original state still, so that only the retraced one moves."""


class Truncation(Section):
    """Which states leave the retrace loss because their transitions look irreversible."""

    mode: Literal["none", "adaptive", "auto", "scheduled"] = "none"
    """`adaptive` follows changes of the value, `auto` also finds η, `scheduled` drops the end of every episode."""
    threshold: float = Field(0.10, gt=0)
    """η, the relative change of the windowed value that counts as sudden (`adaptive`)."""
    window: int = Field(10, ge=1, le=1000)
    """S, how many values are averaged."""
    lookback: int | None = Field(None, ge=0, le=1000)
    """τ, how many states before a change leave the loss; null means S. The paper has 5."""
    start: int = Field(0, ge=0)
    """ξ, environment steps before the critic is trusted to truncate. The paper waits for 100,000."""
    rule: Literal["prose", "algorithm1"] = "prose"
    """`prose` is the paper's Section 3.3; `algorithm1` its line 9 read to the letter."""
    signal: Literal["value", "q"] = "value"
    """`value` is V of each state; `q` is its predicted reward plus γV one model step ahead."""
    final_share: Fraction = 0.3
    """p, the final share of every episode that `scheduled` drops at the start."""
    final_share_steps: int = Field(100_000, ge=1)
    """Environment steps over which p falls linearly to 0."""


class Behaviour(Section):
    """Actor and critic, learned in imagination."""

    horizon: int = Field(15, ge=2, le=200)
    """H, imagined steps from every start."""
    starts: int | None = Field(None, ge=1)
    """Posteriors of a batch from which to imagine, drawn at random; null means all."""
    discount: float = Field(0.99, gt=0, lt=1)
    """γ, the share of its worth that a reward keeps for each step until it comes."""
    trace: Fraction = 0.95
    """λ of the λ-return and of GAE."""
    gradient: Literal["dynamics", "reinforce"] = "dynamics"
    """`dynamics` back-propagates through the model; `reinforce` is a policy gradient with GAE."""
    entropy: float = Field(0.0, ge=0)
    """Weight of the actor's entropy bonus."""
    actor_layers: int = Field(4, ge=1, le=8)
    """Hidden layers of the actor."""
    critic_layers: int = Field(3, ge=1, le=8)
    """Hidden layers of the critic."""
    units: int = Field(512, ge=1, le=8192)
    """Units of each hidden layer of actor and critic."""
    init_std: float = Field(5.0, gt=0, le=20)
    """Spread of an untrained actor before the tanh."""
    min_std: float = Field(1e-4, gt=0, le=1)
    """Least spread of the actor before the tanh."""
    mean_scale: float = Field(5.0, gt=0, le=20)
    """Bound of the actor's mean before the tanh; a smaller one keeps actions from saturating."""
    exploration: float = Field(0.3, ge=0, le=2)
    """Standard deviation of the noise added to actions while training, before they are clipped."""


class Optimiser(Section):
    """Adam for each part."""

    model: LearningRate = 6e-4
    """Learning rate of the world model."""
    critic: LearningRate = 8e-5
    """Learning rate of the critic."""
    actor: LearningRate = 8e-5
    """Learning rate of the actor."""
    epsilon: float = Field(1e-7, gt=0, le=1)
    """Adam's ε, which keeps its steps finite where gradients vanish."""
    clip: float = Field(100.0, gt=0)
    """Gradient norm at which each part's gradient is clipped."""


class Train(Section):
    """The budget, and how acting and learning alternate."""

    env_steps: int = Field(1_000_000, ge=1)
    """Environment steps (simulator frames) to train for, the random episodes included."""
    updates: int = Field(100, ge=1)
    """Updates of a cycle; the first cycle learns from the random episodes alone."""
    update_every: int = Field(1000, ge=1)
    """Environment steps of a cycle: whole episodes are played until they are reached, then `updates` follow."""
    batch: int = Field(64, ge=1, le=4096)
    """Windows in a batch."""
    length: int = Field(50, ge=3, le=1000)
    """Steps of a window."""
    evaluate_every: int = Field(10_000, ge=1)
    """Environment steps between greedy evaluations on the learning curve."""
    evaluate_episodes: int = Field(1, ge=1, le=1000)
    """Episodes of each of these evaluations."""
    log_every: int = Field(50, ge=1)
    """Updates over which logged losses are averaged."""


class Trainer(Section):
    """Where training runs, and in which number format."""

    accelerator: Literal["auto", "cpu", "gpu", "tpu", "mps"] = "auto"
    """The kind of device."""
    devices: int = Field(1, ge=1, le=64)
    """How many devices share each batch, a process for each (on a CPU: how many processes); the first also acts."""
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed"] = "32-true"
    """Number format of the update; mixed is slower than 32 on a CPU."""
    strategy: Literal["auto", "ddp"] = "auto"
    """How devices share the work: `ddp` averages their gradients; `auto` is that where there are several devices."""
    threads: int = Field(2, ge=1, le=1024)
    """CPU threads; pinned, because sums differ in their last bits between thread counts."""


class Evaluate(Section):
    """Greedy returns of the trained agent."""

    episodes: int = Field(10, ge=1, le=10_000)
    """Greedy episodes; their seeds are the same for every variant."""


class Rollout(Section):
    """Open-loop prediction on the held-out episodes."""

    context: int = Field(5, ge=1, le=1000)
    """Frames that the model sees first."""
    horizon: int = Field(45, ge=1, le=1000)
    """Steps that it then predicts from actions alone."""
    shown: int = Field(1, ge=1, le=16)
    """Episodes that are drawn as strips and videos; all held-out ones are measured."""


class States(Section):
    """The latent states along episodes: maps of them, and truncation against the world's truth."""

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
    """Values of η at which truncation is compared with the world's truth."""


class Transfer(Section):
    """Zero-shot transfer: the trained agent in changed worlds."""

    rows: list[Row] = Field(min_length=1)
    """Combinations of changes: R reward, M mass, F friction, S stiffness, L layout of a maze."""
    draws: int = Field(3, ge=1, le=1000)
    """Changed worlds drawn for each row, one episode in each; the same for every variant."""
    units: Literal["factor", "absolute"] = "factor"
    """Whether mass, friction and stiffness multiply the world's own values or replace them."""
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
    colours: dict[VariantName, Annotated[str, Field(pattern=COLOUR)]] = {}
    """Colour of a variant, as #rrggbb; others follow a colour-blind safe order."""
    target_score: Fraction = 0.5
    """Score whose first reaching on the learning curve is timed: 0 is the random policy, 1 the best possible return."""


class Tracking(Section):
    """Where MLflow keeps runs; MLFLOW_TRACKING_URI moves the store."""

    experiment: Name = "ccwm"
    """MLflow experiment that all runs belong to."""
    timeout: float = Field(10.0, gt=0, le=600)
    """Seconds that a stage waits at its end for a store that does not answer; the rest stays on disk."""


Bound = Annotated[float, Field(ge=-1e12, le=1e12)]


class Parameter(Section):
    """One setting that a search may change, and how far."""

    kind: Literal["float", "int", "choice"]
    """`float` and `int` have bounds, `choice` has a list."""
    low: Bound | None = None
    """Least value."""
    high: Bound | Key | None = None
    """Greatest value, or the key of another parameter that this one must not exceed."""
    log: bool = False
    """Whether values are drawn evenly over orders of magnitude."""
    choices: list[bool | int | float | Annotated[str, Field(max_length=200)] | None] | None = None
    """The values of a `choice`."""

    @model_validator(mode="after")
    def _is_whole(self) -> Parameter:
        if self.kind == "choice":
            if not self.choices or self.low is not None or self.high is not None or self.log:
                raise ValueError("must have `choices`, at least one, and neither bounds nor log, as its kind is choice")
            return self
        if self.low is None or self.high is None or self.choices is not None:
            raise ValueError(f"must have `low` and `high` and no choices, as its kind is {self.kind}")
        bounds = [self.low] if isinstance(self.high, str) else [self.low, self.high]
        if self.kind == "int" and any(bound != int(bound) for bound in bounds):
            raise ValueError("must have whole numbers as bounds, as its kind is int")
        if self.log and (isinstance(self.high, str) or self.low <= 0):
            raise ValueError("must have a number above 0 as its low and a number as its high, as its scale is log")
        if not isinstance(self.high, str) and self.low >= self.high:
            raise ValueError("must have a low that is below its high")
        return self


class Tune(Section):
    """The search for better settings; trials, hours, top, storage and keep may change while a study goes on."""

    study: VariantName = "truncation"
    """Name of the search: processes that give the same name work on the same one."""
    task: Name
    """The world in which trials are trained."""
    variant: VariantName = "ccwm-truncated"
    """The entry of `variants` that is tuned; `ccwm tune apply` writes the winner into its overrides."""
    space: dict[Key, Parameter] = Field(min_length=1)
    """What is searched: a setting's key, its kind, and its bounds or choices."""
    overrides: dict[Key, JsonValue] = {}
    """Settings of every trial that the pipeline does not have, such as a smaller `train.env_steps`."""
    measure: Literal["auc", "final", "truncation_f1"] = "auc"
    """What is maximised: mean height of the learning curve, its last return, or in a maze the truncation's F1."""
    seeds: list[Seed] = Field([0, 1, 2], min_length=1)
    """Seeds of every trial, one after the other; its value is the mean over them."""
    fresh_seeds: list[Seed] = Field([100, 101, 102], min_length=1)
    """Seeds on which the best trials are trained again before a winner is named."""
    top: int = Field(3, ge=1, le=1000)
    """How many of the best trials are trained again on the fresh seeds; the default settings always are."""
    sampler: Literal["tpe", "grid", "random"] = "tpe"
    """How points are proposed."""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """How hopeless trials are ended early."""
    startup: int = Field(5, ge=1, le=10_000)
    """Trials before `tpe` models the measure (until then it draws at random) and before `median` prunes."""
    grid: int = Field(5, ge=2, le=1000)
    """Points that `grid` lays over each float or int."""
    trials: int | None = Field(30, ge=1)
    """Trials of the whole study, those of other processes included; null leaves the end to hours."""
    hours: float | None = Field(None, gt=0)
    """Hours after which this process begins no further trial; null leaves the end to trials."""
    storage: Annotated[str, Field(pattern=STORAGE)] | None = None
    """`postgresql://user@host/database` for several hosts; null is a journal in `.work/tune`, for one host."""
    heartbeat: int = Field(30, ge=1, le=3600)
    """Seconds between a process's signs of life on PostgreSQL; its trial is retried when four have been missed."""
    keep: Literal["best", "all", "none"] = "best"
    """Whose trained agents stay in `.work/tune`: the best trial's, every trial's, or nobody's."""

    @model_validator(mode="after")
    def _is_sound(self) -> Tune:
        listed = [*self.seeds, *self.fresh_seeds]
        if len(set(listed)) != len(listed):
            raise ValueError("must not name a seed twice; fresh_seeds are none of seeds, or they would not be fresh")
        if self.trials is None and self.hours is None:
            raise ValueError("must have trials, hours or both, or the search would never end")
        return self


class Settings(Section):
    """All of ``params.yaml``."""

    study: Study
    variants: dict[VariantName, dict[str, JsonValue]] = Field(min_length=1)
    """Named overrides: `dreamer: {retrace.weight: 0}`."""
    env: Env
    render: Render
    collect: Collect
    replay: Replay
    model: Model
    retrace: Retrace
    truncation: Truncation
    behaviour: Behaviour
    optimiser: Optimiser
    train: Train
    trainer: Trainer
    evaluate: Evaluate
    rollout: Rollout
    states: States
    transfer: Transfer
    report: Report
    tracking: Tracking
    tune: Tune

    @model_validator(mode="after")
    def _devices_have_work(self) -> Settings:
        devices = self.trainer.devices
        if self.train.batch % devices:
            raise ValueError(
                f"train.batch ({self.train.batch}) must be a multiple of trainer.devices ({devices}), "
                f"which share it evenly"
            )
        if self.behaviour.starts is not None and self.behaviour.starts < devices:
            raise ValueError(
                f"behaviour.starts ({self.behaviour.starts}) must be at least trainer.devices ({devices}), "
                f"so that each has a dream"
            )
        return self

    @model_validator(mode="after")
    def _windows_are_long_enough(self) -> Settings:
        length = self.train.length
        if self.retrace.weight > 0 and self.retrace.horizon >= length:
            raise ValueError(f"retrace.horizon ({self.retrace.horizon}) must be below train.length ({length})")
        if self.truncation.mode in ("adaptive", "auto") and self.truncation.window >= length:
            raise ValueError(
                f"truncation.window ({self.truncation.window}) must be below train.length ({length}), "
                f"or no change of value would ever be seen"
            )
        return self
