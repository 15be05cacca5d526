"""Operands to codes: arithmetic, one instruction, whole products."""
