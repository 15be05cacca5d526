"""Execution of a launch: paths, convergence, schedules, barriers, asynchronous operations, clusters."""
