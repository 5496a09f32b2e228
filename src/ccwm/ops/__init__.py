"""Pure maths on tensors: no config, no modules."""
