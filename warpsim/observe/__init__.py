"""What is observed of a launch beside its values."""
