"""The Debug Adapter Protocol: a session for editors, over any pair of streams."""
