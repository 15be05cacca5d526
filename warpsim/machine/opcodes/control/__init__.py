"""Opcodes of control flow, barriers, fences, and exchange between lanes."""
