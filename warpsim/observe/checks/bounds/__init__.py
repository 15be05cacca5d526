"""Which argument or variable an address is computed from, and accesses that leave its allocation."""
