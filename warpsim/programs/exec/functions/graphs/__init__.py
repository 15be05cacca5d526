"""Graphs of work: built, captured, read, changed, and what their nodes and objects are."""
