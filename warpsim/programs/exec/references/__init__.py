"""References of kernels that host programs launch."""
