"""Recordings of launches: where two of them differ first, and chains of instructions in a recording."""
