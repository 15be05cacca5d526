"""How products are summed, in exact integers and compiled kernels. Knows no lanes and no registers."""
