"""Deliberate faults in the numerics, and whether the corner vectors catch them."""
