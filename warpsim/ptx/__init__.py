"""PTX text: statements, operands and constants, and which form and roles they spell. No values."""
