"""What is suspicious about the registers of a sparse instruction, found without executing it."""
