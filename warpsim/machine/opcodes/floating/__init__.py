"""Opcodes of floating-point arithmetic."""
