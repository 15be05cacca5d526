"""Opcodes of matrices: mma, wgmma, wmma and the matrices between shared memory and registers."""
