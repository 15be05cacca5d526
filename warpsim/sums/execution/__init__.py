"""The bridge: one instruction or a batch of it, from its operands to D.

A call of warpsim.execute takes one of two paths, which ``pipeline.path_of`` selects from its arguments::

                               ┌─► fused_registers: a kernel reads registers and tiles, writes registers
    inputs ─► path_of ─────────┤   (recipes.py: the words of every operand). Does not pass the hinge.
                               │
                               └─► gather ──► Operands ──► codes of D ──► scatter
                                   (isa:       the hinge    (code_engines:    (isa: the
                                   placements)              an engine)        placement of D)

The general path serves every instruction. The shortcut serves compiled kernels on plain registers and returns
None for metadata without a meaning, which the general path then reports. Both give the same bits.
``code_engines.engine_of`` selects what turns ``Operands`` into codes: compiled kernels, NumPy for the first
small calls of a product (compilation_budget.py), or the reference. warpsim.matmul enters at ``Operands``
(logical_matrices.py).
"""
