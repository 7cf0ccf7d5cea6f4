"""Scores of what a run says."""
