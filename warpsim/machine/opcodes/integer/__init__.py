"""Opcodes of integers, bits and comparison."""
