"""Host programs that use CUDA, unmodified, with no GPU: their calls are answered here."""
