"""Opcodes that move data and update memory."""
