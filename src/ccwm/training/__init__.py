"""The Lightning module, the loop that mixes acting and learning, checkpoints."""
