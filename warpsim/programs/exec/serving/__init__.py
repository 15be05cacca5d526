"""What is served: programs and their processes, on one socket, from this process or from another."""
