"""What warpsim guarantees, infers and refuses."""
