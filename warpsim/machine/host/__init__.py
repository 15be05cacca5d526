"""Memory and arguments of a launch as users hold them."""
