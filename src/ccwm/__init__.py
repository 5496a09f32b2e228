"""ccwm: world models that learn from retracing."""
