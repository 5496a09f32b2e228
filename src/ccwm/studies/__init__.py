"""Studies of a trained agent: each measures something, and writes and reads its own result files."""
