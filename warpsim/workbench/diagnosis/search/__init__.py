"""The search for the mistakes behind a wrong D of one instruction, and remarks on that D."""
