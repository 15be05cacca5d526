"""Opcodes of conversion between types."""
