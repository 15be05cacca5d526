"""Memory: allocated, mapped, copied and filled."""
