"""What scalar PTX opcodes compute, lane by lane: one table row a form, one pure function an operation.

Knows types, modifiers and values; does not know registers, guards, memory, or text.
"""
