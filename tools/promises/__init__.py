"""The record of ``warpsim info --promises``: numbers of tests, what tools said, labels of statements."""
