"""Dumps, logs, stored results and prints of other people, written down before ``diff`` located anything."""
