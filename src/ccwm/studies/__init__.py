"""What is measured of a trained agent."""
