"""Rules as programs: data, an interpreter of it, and the ranges of its values."""
