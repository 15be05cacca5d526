"""Orders in which kernels and libraries store sparse metadata."""
