"""The world model, actor and critic and the recurrent policy."""
