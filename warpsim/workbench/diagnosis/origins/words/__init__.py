"""Metadata and scales of matrix instructions: the words that a kernel loads, and what is wrong with them."""
