"""Launches that are tried in another way, whatever an operand is made of, and followed stores.

argument_causes    two arguments exchanged, or axes of the grid; a matrix transposed
undone_mistakes    mistakes of the library of warpsim diff, undone in every execution
restated_causes    statements that should be another form of their opcode
uncovered_outputs  elements of outputs that are never stored
"""
