"""What tests the promises of ``warpsim info --promises``: numbers of tests, and what tools printed."""
