"""Masked language modelling: an encoder learns from plain text by guessing hidden tokens."""
