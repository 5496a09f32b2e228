"""The sections that decide an agent: frozen, strict, each field with its bounds and a sentence.

Maths never sees these classes; it takes values.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from ccwm.settings.kinds import NEEDS
from ccwm.settings.section import Fraction, LearningRate, Section


class Agent(Section):
    """Which of the agents of the paper's framework learns."""

    kind: Literal["world_model", "sac", "model_free", "playvirtual"] = "world_model"
    """`world_model`: CCWM, Dreamer; `model_free`: Appendix B; `sac`: soft actor-critic; `playvirtual`: PlayVirtual."""


class Env(Section):
    """How an environment is observed and stepped."""

    observation: Literal["pixels", "state"] = "pixels"
    """What the agent sees: `pixels`, as in the paper, or the world's `state` as one vector, which needs no OpenGL."""
    size: Literal[32, 64] = 64
    """Height and width of the image in pixels; the agent sees it unless `env.observation` is `state`."""
    action_repeat: int = Field(2, ge=1, le=16)
    """Simulator frames for each action of the agent."""
    time_limit: int = Field(1000, ge=10, le=1_000_000)
    """Environment steps (simulator frames) after which an episode is cut off, which is no termination."""
    render_quality: Literal["fast", "full"] = "full"
    """`full` is dm_control's own picture; `fast` leaves out shadows, reflections and multisampling."""


class Replay(Section):
    """How training windows are drawn from the episodes."""

    sampling: Literal["steps", "episodes"] = "episodes"
    """`episodes` draws an episode, then a start (Dreamer's way); `steps` draws uniformly over all stored windows."""
    capacity: int = Field(2_000_000, ge=1000)
    """Environment steps kept; the oldest episodes beyond it are no longer drawn."""


class Model(Section):
    """The world model: encoder, RSSM, decoder and heads."""

    depth: int = Field(32, ge=1, le=256)
    """Channels of the first convolution from pixels; each later layer doubles them."""
    vector_layers: int = Field(2, ge=1, le=8)
    """Hidden layers of encoder and decoder from states."""
    vector_units: int = Field(256, ge=1, le=8192)
    """Units of each of these layers."""
    symlog: bool = False
    """Whether state vectors are encoded and predicted as sign(x) · log(1 + |x|): large ones do not drown small ones."""
    deter: int = Field(256, ge=1, le=8192)
    """Units of the GRU, the deterministic part of a state."""
    stoch: int = Field(32, ge=1, le=1024)
    """Dimensions of the Gaussian part of a state."""
    hidden: int = Field(256, ge=1, le=8192)
    """Units of the dense layers inside the RSSM."""
    activation: Literal["relu", "elu", "silu"] = "relu"
    """Activation of the model's dense layers and of ρ: the paper's ReLU, Dreamer's ELU, or DreamerV3's SiLU."""
    layer_norm: bool = False
    """Whether each of these layers is normalised before its activation."""
    init: Literal["glorot", "torch"] = "glorot"
    """Initial weights of every layer: TensorFlow's (the paper's framework), or torch's, which are smaller."""
    min_std: float = Field(0.1, gt=0, le=10)
    """Added to softplus, so that no latent Gaussian collapses."""
    reward_layers: int = Field(2, ge=1, le=8)
    """Hidden layers of the reward head."""
    reward_units: int = Field(512, ge=1, le=8192)
    """Units of each hidden layer of the reward and continue heads."""
    reward_head: Literal["gaussian", "two_hot"] = "gaussian"
    """What the reward head predicts: the mean of a unit Gaussian, or a categorical over `bins`."""
    bins: int = Field(63, ge=3, le=1023)
    """Bins of two-hot heads, evenly spaced on symlog's scale."""
    bin_limit: float = Field(6.0, gt=0, le=20)
    """The outermost bins on that scale; 6 is a reward or a return of ±402."""
    zero_heads: bool = False
    """Whether reward head and critic begin with an output of zero."""
    free_nats: float = Field(3.0, ge=0)
    """The averaged KL has no gradient, in either direction, below this many nats."""
    kl_dynamics: float = Field(1.0, ge=0)
    """Weight of the KL's gradient into the prior; Dreamer v1 has 1 for both directions."""
    kl_representation: float = Field(1.0, ge=0)
    """Weight of the KL's gradient into the posterior."""
    observation_scale: float = Field(1.0, gt=0)
    """Weight of the observation term; 1 is a unit-variance Gaussian, on pixels in [-0.5, 0.5]."""
    reward_scale: float = Field(1.0, gt=0)
    """Weight of the reward term."""
    continues: bool = False
    """Whether a head predicts termination; only for tasks whose episodes terminate."""


class Retrace(Section):
    """Learning via retracing: from each state back to the one before it."""

    weight: float = Field(1.0, ge=0)
    """λ, the scale of the cycle term; 0 is exactly the Dreamer baseline, and nothing of retracing is computed."""
    loss: Literal[
        "bisimulation", "l2", "reconstruction", "kl", "metric", "released", "released-l2", "released-reconstruction"
    ] = "bisimulation"
    """How ž is compared with z̃: the paper's three, `kl` and `metric` (0 at z̃ alone), or the authors' own code."""
    length: int | None = Field(None, ge=2, le=1000)
    """Steps of each window that are retraced, a random stretch of it in every update; null means all."""
    horizon: int = Field(1, ge=1, le=50)
    """K, how many steps a chain walks back."""
    samples: int = Field(1, ge=1, le=64)
    """Draws of each retraced state that the loss is averaged over."""
    reverse_action: Literal["joint", "separate"] = "joint"
    """Whether ρ learns with the world model, or on its own optimiser with the world model detached."""
    reverse_units: int = Field(256, ge=1, le=8192)
    """Units of each of the two hidden layers of ρ, or of the reversed model of `model_free`."""
    detach: Literal["none", "original"] = "none"
    """`original` puts a stop-gradient on the original state, so that only the retraced one moves."""


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


class ActorCritic(Section):
    """Actor and critic, learned in imagination."""

    horizon: int = Field(15, ge=2, le=200)
    """H, imagined steps from every start."""
    starts_per_window: int | None = Field(None, ge=1)
    """Posteriors of each window of the batch from which to imagine, drawn at random; null means all."""
    discount: float = Field(0.99, gt=0, lt=1)
    """γ, the discount factor."""
    return_lambda: Fraction = 0.95
    """λ of the λ-return and of GAE."""
    gradient: Literal["dynamics", "reinforce"] = "dynamics"
    """`dynamics` back-propagates through the model; `reinforce` is a policy gradient with GAE."""
    critic_head: Literal["gaussian", "two_hot"] = "gaussian"
    """What the critic predicts: the mean of a unit Gaussian, or a categorical over `model.bins`."""
    slow_critic: float | None = Field(None, gt=0, le=1)
    """Share of the critic that a slow copy, which gives the targets, takes over in every update; null means no copy."""
    normalise_returns: bool = False
    """Whether the actor's returns are divided by max(1, running range from their 5th to their 95th percentile)."""
    layer_norm: bool = False
    """Whether each dense layer of actor and critic is normalised before its activation."""
    actor_activation: Literal["relu", "elu", "silu"] = "elu"
    """Activation of the actor."""
    critic_activation: Literal["relu", "elu", "silu"] = "relu"
    """Activation of the critic."""
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


class SAC(Section):
    """Soft actor-critic, by stable-baselines3 with its published values; all kinds but `world_model` read it."""

    learning_rate: LearningRate = 3e-4
    """Learning rate of actor, critics and temperature."""
    discount: float = Field(0.99, gt=0, lt=1)
    """γ, the discount factor."""
    tau: float = Field(0.005, gt=0, le=1)
    """Share of the critics that their slow copies, which give the targets, take over in every update."""
    layers: int = Field(2, ge=1, le=8)
    """Hidden layers of the actor and of each critic."""
    units: int = Field(256, ge=1, le=8192)
    """Units of each of these layers."""


class PlayVirtual(Section):
    """PlayVirtual's latent dynamics and virtual cycles; `agent.kind: playvirtual` reads it."""

    latent: int = Field(50, ge=1, le=8192)
    """Dimensions of the latent."""
    units: int = Field(512, ge=1, le=8192)
    """Units of the hidden layers of both dynamics and of the heads that distances are taken behind."""
    sequences: int = Field(10, ge=1, le=1000)
    """Virtual action sequences from each state."""
    length: int = Field(6, ge=1, le=50)
    """K, actions of each of them, and steps of the prediction along the real ones."""
    target_rate: float = Field(0.05, gt=0, le=1)
    """Share of encoder and projection that their slow copies, the targets, take over in every update; our choice."""
    frames: int = Field(3, ge=1, le=8)
    """Images that make one latent; a state needs no other."""
    shift: int = Field(4, ge=0, le=16)
    """Most pixels by which images are randomly shifted; states are not augmented."""


class Optimiser(Section):
    """Adam, with a learning rate for each part."""

    model_lr: LearningRate = 6e-4
    """Learning rate of the world model."""
    critic_lr: LearningRate = 8e-5
    """Learning rate of the critic."""
    actor_lr: LearningRate = 8e-5
    """Learning rate of the actor."""
    eps: float = Field(1e-7, gt=0, le=1)
    """Adam's ε, added to its denominator."""
    grad_clip: float = Field(100.0, gt=0)
    """Norm at which each part's gradient is clipped."""


class Train(Section):
    """The budget, and how acting and learning alternate."""

    env_steps: int = Field(1_000_000, ge=1)
    """Environment steps (simulator frames) to train for, the random episodes included."""
    pretrain: int | None = Field(None, ge=1)
    """Updates of the first cycle, which learns from the random episodes alone; null means `updates`."""
    updates: int = Field(100, ge=1)
    """Updates of every other cycle."""
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
    actors: int = Field(0, ge=0, le=64)
    """Processes that play a cycle during the updates of the cycle before, with its weights; 0 acts without that lag."""


class Trainer(Section):
    """Where training runs, and in which number format."""

    accelerator: Literal["auto", "cpu", "gpu", "tpu", "mps"] = "auto"
    """The kind of device."""
    devices: int = Field(1, ge=1, le=64)
    """Devices that share each batch, a process for each, over all hosts; on a CPU: processes. The first also acts."""
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed"] = "32-true"
    """Number format of the update; mixed is slower than 32 on a CPU."""
    strategy: Literal["auto", "ddp"] = "auto"
    """`ddp` averages gradients over devices; `auto` is that where there are several devices."""
    threads: int = Field(2, ge=1, le=1024)
    """CPU threads; pinned, because sums differ in their last bits between thread counts."""


class AgentConfig(Section):
    """All that decides an agent beside its task and its seed."""

    agent: Agent = Agent.model_validate({})  # agents that were exported before there were kinds have no such section
    env: Env
    model: Model
    retrace: Retrace
    truncation: Truncation
    actor_critic: ActorCritic
    sac: SAC = SAC.model_validate({})
    playvirtual: PlayVirtual = PlayVirtual.model_validate({})
    optimiser: Optimiser
    replay: Replay
    train: Train
    trainer: Trainer

    def flat(self) -> dict[str, JsonValue]:
        """Plain values under dotted keys: `train.batch`."""
        sections = self.model_dump(mode="json", include=set(AgentConfig.model_fields))
        return {f"{name}.{field}": value for name, fields in sections.items() for field, value in fields.items()}

    @model_validator(mode="after")
    def _kind_fits(self) -> Self:
        for key, (*needed, why) in NEEDS[self.agent.kind].items():
            section, _, field = key.partition(".")
            value = getattr(getattr(self, section), field)
            if value not in needed:
                rule = f"must be {' or '.join(map(str, needed))} with agent.kind: {self.agent.kind} ({why})"
                raise ValueError(f"{key} ({value}) {rule}; set it so, or choose another kind")
        return self

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        length, starts = self.train.length, self.actor_critic.starts_per_window
        batch, devices = self.train.batch, self.trainer.devices
        if batch % devices:
            rule = f"must be a multiple of trainer.devices ({devices}), which share it evenly"
            raise ValueError(f"train.batch ({batch}) {rule}")
        retraces = self.retrace.weight > 0 and self.agent.kind != "playvirtual"
        if retraces and self.retrace.horizon >= length:
            raise ValueError(f"retrace.horizon ({self.retrace.horizon}) must be below train.length ({length})")
        stretch = self.retrace.length or length
        if retraces and not self.retrace.horizon < stretch <= length:
            rule = f"must be above retrace.horizon ({self.retrace.horizon}) and at most train.length ({length})"
            raise ValueError(f"retrace.length ({stretch}) {rule}")
        if starts is not None and starts > length:
            raise ValueError(f"actor_critic.starts_per_window ({starts}) must be at most train.length ({length})")
        if self.truncation.mode in ("adaptive", "auto") and self.truncation.window >= length:
            rule = f"must be below train.length ({length}), or no change of value would ever be seen"
            raise ValueError(f"truncation.window ({self.truncation.window}) {rule}")
        return self
