"""Execution of a wave: paths, convergence, schedules, barriers, asynchronous operations, clusters."""
