"""Pipelines with one synchronising statement left out or changed, and what a launch says of each."""
