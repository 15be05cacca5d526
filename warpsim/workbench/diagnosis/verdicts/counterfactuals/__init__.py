"""Launches that are tried in another way, whatever an operand is made of, and followed stores.

argument_causes    two arguments exchanged, or axes of the grid; elements of outputs that are never stored
reverted_mistakes    mistakes of the library of warpsim diff, undone in every execution
opcode_variants    statements that should be another form of their opcode; comparisons with another bound
"""
