"""Loss terms as pure functions of distributions and targets."""
