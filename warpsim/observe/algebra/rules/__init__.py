"""Rules of scalar opcodes: what becomes of keys in a statement, by the meaning of its row."""
