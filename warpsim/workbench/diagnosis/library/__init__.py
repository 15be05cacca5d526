"""Mistakes of programmers: what each changes in the operands, the arithmetic or D of one instruction."""
