"""Runs of a mechanism's own code that try to refute its guarantee."""
