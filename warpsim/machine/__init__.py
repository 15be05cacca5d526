"""Lanes in time: registers, memories, and machines that execute statements on them."""
