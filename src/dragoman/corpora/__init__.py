"""Corpora that come with Dragoman or that it fetches."""
