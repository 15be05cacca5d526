"""Keys: arithmetic in finite fields, constants, bits of integers, bytes with keys and what they read as."""
