"""Mistakes that users make, written down before the diagnosis knew them."""
