"""The world model, the behaviour and the recurrent policy."""
