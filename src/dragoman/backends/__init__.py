"""Faster implementations of layers, chosen in one place and held to the textbook by tests."""
