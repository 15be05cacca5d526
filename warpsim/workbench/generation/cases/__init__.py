"""Operands of cases: random, exhaustive, and directed at one corner of the arithmetic each."""
