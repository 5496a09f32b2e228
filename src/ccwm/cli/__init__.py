"""Commands and groups of `ccwm` that are a file each; those with more to them are packages of their own."""
