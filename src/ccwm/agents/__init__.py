"""The world model, the actor_critic and the recurrent policy."""
