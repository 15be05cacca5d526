"""Binding of statements: names, constants and operands become readers and writers."""
