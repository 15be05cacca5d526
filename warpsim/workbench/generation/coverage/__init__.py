"""Coverage bins: which exist for an instruction, which a set of cases hits, and why others cannot be hit."""
