"""Vector sets: many cases of an instruction, their files, their provenance, and their verification."""
