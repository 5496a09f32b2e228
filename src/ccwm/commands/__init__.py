"""The groups of the `ccwm` command that have a file of their own."""
