"""Vector sets: many cases of one instruction, their files, where they come from, and checking them."""
