"""Speed of whole products and of batches, relative to NumPy's float32 matmul: ``python -m tools.bench``."""
