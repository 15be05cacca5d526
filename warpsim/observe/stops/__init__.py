"""Where a launch stops, and what is known there: places, conditions, watches, values."""
