"""A learner small enough to run in milliseconds, and a batch to feed it."""

import torch

from ccwm.agents.learner import Learner, Losses
from ccwm.settings.agent import ActorCritic, Model, Retrace, Truncation
from ccwm.structs import Batch

ACTIONS = 2


def tiny_learner(*, seed=0, size=32, model=None, retrace=None, truncation=None, actor_critic=None):
    """A learner whose first weights are a function of the seed; the dicts override its tiny settings."""
    torch.manual_seed(seed)
    return Learner(
        model=Model(**{"depth": 2, "deter": 6, "stoch": 3, "hidden": 8, "activation": "elu", "reward_units": 8,
                       "free_nats": 0.0}
                    | (model or {})),
        retrace=Retrace(**{"reverse_units": 8} | (retrace or {})),
        truncation=Truncation(**(truncation or {})),
        actor_critic=ActorCritic(**{"horizon": 3, "units": 8} | (actor_critic or {})),
        size=size,
        actions=ACTIONS,
    )  # fmt: skip


def random_batch(length=5, batch=3, *, seed=0, size=32, dtype=torch.float32):
    """B windows from the middle of longer episodes that end with the window."""
    generator = torch.Generator().manual_seed(seed)
    return Batch(
        image=torch.randint(0, 256, (length, batch, 3, size, size), generator=generator, dtype=torch.uint8),
        action=torch.rand(length, batch, ACTIONS, generator=generator, dtype=dtype) * 2 - 1,
        reward=torch.rand(length, batch, generator=generator, dtype=dtype),
        is_first=torch.zeros(length, batch, dtype=torch.bool),
        continues=torch.ones(length, batch, dtype=dtype),
        position=torch.arange(10, 10 + length).unsqueeze(1).repeat(1, batch),
        episode_length=torch.full((length, batch), 10 + length),
        irreversible=torch.zeros(length, batch, dtype=torch.bool),
    )


def losses_of(learner, batch, *, update=0, env_steps=0) -> Losses:
    """The losses of one update with the noise that belongs to it."""
    return learner(batch, learner.noise(0, update, batch), env_steps)


def backward(learner, losses):
    """Fill every parameter's gradient as training does: each loss reaches its own part alone."""
    groups = learner.parts()
    learner.zero_grad()
    for part, loss in losses.parts.items():
        loss.backward(inputs=groups[part], retain_graph=True)


def reached(loss, parameters):
    """For each parameter, whether the loss has any path to it."""
    gradients = torch.autograd.grad(loss, list(parameters), allow_unused=True, retain_graph=True)
    return [gradient is not None for gradient in gradients]
