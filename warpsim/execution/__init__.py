"""The bridge: one instruction or a batch of it, from registers to registers, from matrices to matrices."""
