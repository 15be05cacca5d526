"""What exists: formats, chips, instructions, layouts, metadata and descriptors. No text, no sums."""
