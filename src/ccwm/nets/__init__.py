"""Neural networks, and nothing but nn.Modules."""
