"""Digests of results: the same on every platform, with every version of every library."""
