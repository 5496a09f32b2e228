"""The model-based agents, CCWM and Dreamer: their parts, and how they learn to act in imagination."""

from __future__ import annotations

from torch import Tensor, nn

from ccwm.agents.actor_critic import ActorCritic
from ccwm.agents.noise import Noise
from ccwm.agents.recurrent import RecurrentPolicy
from ccwm.agents.retracing import SharedRetracing
from ccwm.agents.world_model_learner import WorldModelLearner
from ccwm.nets.init import init_weights
from ccwm.settings.agent import AgentConfig
from ccwm.structs import LatentState, Terms


class ModelBasedLearner(WorldModelLearner):
    """World model, actor and critic and, where the weight of retracing is above 0, retracing and truncation."""

    acting_parts = ("world_model.encoder.", "world_model.rssm.", "actor_critic.actor.")

    def __init__(self, config: AgentConfig, *, observation_shape: tuple[int, ...], actions: int) -> None:
        super().__init__(config, observation_shape=observation_shape, actions=actions)
        feature = self.world_model.rssm.feature
        actor_critic = ActorCritic(config.actor_critic, config.model, feature=feature, actions=actions)
        self.actor_critic = init_weights(actor_critic, config.model.init)
        self.actor_critic.copy_critic()
        self.build_retracing(SharedRetracing, discount=config.actor_critic.discount)

    @property
    def control(self) -> ActorCritic:
        """The actor and the critic."""
        return self.actor_critic

    def after_step(self) -> None:
        """Move the slow critic."""
        self.actor_critic.follow_critic()

    def policy(self, *, explore: bool = False) -> RecurrentPolicy:
        """The actor on the posterior, greedy or with the noise of training."""
        exploration = self.config.actor_critic.exploration if explore else None
        return RecurrentPolicy(self.world_model, self.actor_critic.actor, exploration=exploration)

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters that each loss trains."""
        groups = {
            "model": list(self.world_model.parameters()),
            "actor": list(self.actor_critic.actor.parameters()),
            "critic": list(self.actor_critic.critic.parameters()),
        }
        if self.retracing is not None:
            part = "reverse" if self.retracing.learns_alone else "model"
            groups.setdefault(part, []).extend(self.retracing.parameters())
        return groups

    def imagine(self, posterior: LatentState, noise: Noise) -> Terms:
        """Imagine from posteriors of every window, and learn to act there."""

        def chosen(part: Tensor) -> Tensor:
            """[T, B, ·] → [starts · B, ·]."""
            index = noise.start.unsqueeze(-1).expand(-1, -1, part.shape[-1])
            return part.detach().gather(0, index).flatten(0, 1)  # detached: imagination must not train the model

        start = posterior.map(chosen)
        imagined = self.actor_critic.imagine(start, self.world_model, noise=noise.imagined, action_noise=noise.action)
        losses, metrics = self.actor_critic.loss(imagined, self.world_model)
        return Terms(losses, {**{f"{part}/loss": loss for part, loss in losses.items()}, **metrics})
