"""A learner small enough to run in milliseconds, a batch to feed it, and the updates that training makes."""

from unittest.mock import patch

import lightning as L
import torch

from ccwm.agents.model_based import ModelBasedLearner
from ccwm.agents.noise import draw_noise
from ccwm.settings.agent import AgentConfig
from ccwm.structs import Batch, Terms
from ccwm.training.module import CCWM
from ccwm.training.update import JointUpdater

ACTIONS, NUMBERS = 2, 5  # of an action, of a state vector
TINY = {
    "env": {"size": 32},
    "model": {"depth": 2, "deter": 6, "stoch": 3, "hidden": 8, "activation": "elu", "reward_units": 8,
              "free_nats": 0.0},
    "retrace": {"reverse_units": 8},
    "truncation": {"window": 2},
    "actor_critic": {"horizon": 3, "units": 8},
    "optimiser": {},
    "replay": {},
    "train": {"batch": 4, "length": 5},
    "trainer": {"accelerator": "cpu"},
}  # fmt: skip
ROBUST = {
    "model": {"vector_layers": 1, "vector_units": 8, "symlog": True, "activation": "silu", "layer_norm": True,
              "reward_head": "two_hot", "bins": 15, "bin_limit": 3.0, "zero_heads": True, "kl_dynamics": 0.5,
              "kl_representation": 0.1},
    "actor_critic": {"critic_head": "two_hot", "slow_critic": 0.25, "normalise_returns": True, "layer_norm": True,
                     "actor_activation": "silu", "critic_activation": "silu"},
}  # fmt: skip
"""What the robust backbone changes; with it the tiny learner sees state vectors."""
DRAWN_HEADS = {"model": {"zero_heads": False}}
"""Zero heads pass no gradient in their first update, and their values are all alike."""


def config_of(sections, **changes):
    """An AgentConfig of these sections, with what ``changes`` say of each."""
    return AgentConfig.model_validate({name: values | changes.pop(name, {}) for name, values in sections.items()})


def tiny_learner(*, seed=0, size=32, robust=False, **changes):
    """A learner whose initial weights are a function of the seed; the dicts override its tiny settings.

    Of pixels with the paper's backbone, or of state vectors with the robust one.
    """
    torch.manual_seed(seed)
    sections = {name: values | ROBUST.get(name, {}) for name, values in TINY.items()} if robust else TINY
    shape = (NUMBERS,) if robust else (size, size, 3)
    return ModelBasedLearner(config_of(sections, **changes), observation_shape=shape, actions=ACTIONS)


def random_batch(length=5, batch=3, *, seed=0, size=32, robust=False, dtype=torch.float32):
    """B windows from the middle of longer episodes that end with the window; of state vectors where it is robust."""
    generator = torch.Generator().manual_seed(seed)
    if robust:
        observation = 3 * torch.randn(length, batch, NUMBERS, generator=generator)
    else:
        observation = torch.randint(0, 256, (length, batch, size, size, 3), generator=generator, dtype=torch.uint8)
    return Batch(
        observation=observation,
        action=torch.rand(length, batch, ACTIONS, generator=generator, dtype=dtype) * 2 - 1,
        reward=torch.rand(length, batch, generator=generator, dtype=dtype),
        is_first=torch.zeros(length, batch, dtype=torch.bool),
        continues=torch.ones(length, batch, dtype=dtype),
        position=torch.arange(10, 10 + length).unsqueeze(1).repeat(1, batch),
        episode_length=torch.full((length, batch), 10 + length),
        irreversible=torch.zeros(length, batch, dtype=torch.bool),
    )


def noise_of(learner, batch, *, update=0):
    """The noise of an update of seed 0."""
    return draw_noise(0, update, batch, learner.config)


def terms_of(learner, batch, *, update=0, env_steps=0, noise=None) -> Terms:
    """The losses and metrics of one update, with the noise that belongs to it or another."""
    module = CCWM(learner, seed=0)
    module.counters.updates, module.counters.env_steps = update, env_steps
    noise = noise_of(learner, batch, update=update) if noise is None else noise
    with patch("ccwm.training.module.draw_noise", lambda *inputs: noise):
        return whole_step(module, batch)


def whole_step(module, batch) -> Terms:
    """All that a training step gives, with every graph kept."""
    model, behaviour = module.training_step(batch)
    return model.plus(behaviour)


def trained_parameters(learner):
    """The parameters that have an optimiser: all but those of a slow critic."""
    return [parameter for parameter in learner.parameters() if parameter.requires_grad]


def backward(learner, losses):
    """Fill every parameter's gradient as training does: each loss reaches its own part alone."""
    groups = learner.parts()
    learner.zero_grad()
    for part, loss in losses.items():
        loss.backward(inputs=groups[part], retain_graph=True)


def reached(loss, parameters):
    """For each parameter, whether the loss has any path to it."""
    gradients = torch.autograd.grad(loss, list(parameters), allow_unused=True, retain_graph=True)
    return [gradient is not None for gradient in gradients]


def tiny_updater(*, plugin=None, precision=None, env_steps=0, **changes):
    """A JointUpdater of a tiny learner on this CPU, with a precision or with a precision plugin of Fabric's."""
    fabric = L.Fabric(accelerator="cpu", devices=1, precision=precision, plugins=plugin)
    module = CCWM(tiny_learner(**changes), seed=0)
    module.counters.env_steps = env_steps
    return JointUpdater(fabric, module)


def updated(updater, batches):
    """The same updater, after an update for each batch."""
    for batch in batches:
        updater.step(batch)
    return updater


def assert_equal(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=0)
