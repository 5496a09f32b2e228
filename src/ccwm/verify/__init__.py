"""`ccwm verify`: run the pipeline again from a commit and compare with what was committed."""
