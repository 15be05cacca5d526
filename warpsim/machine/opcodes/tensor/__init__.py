"""tcgen05 in launched kernels: tensor memory, its copies and loads, and matrix instructions of one thread."""
