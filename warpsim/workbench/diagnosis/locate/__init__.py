"""Where the elements of a register dump are: found by value in matrices, with the formula they follow."""
