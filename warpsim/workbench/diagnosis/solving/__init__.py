"""Solving for a mistake: views of an operand, maps of its places, and the map that gives what came out."""
