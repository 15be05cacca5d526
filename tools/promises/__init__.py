"""The record of ``warpsim info --promises``: numbers of tests, what tools last said, and labels of statements."""
