"""Origins of operands: from which elements of the arrays of a launch a matrix instruction takes them."""
