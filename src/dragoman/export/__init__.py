"""Trained runs in the formats of other runtimes."""
