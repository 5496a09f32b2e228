"""`ccwm plan`: what a study will take, from a short measurement on this machine."""
