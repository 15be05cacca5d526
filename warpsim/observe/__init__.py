"""One stream of events of a running launch: checks of its order, and records of it."""
