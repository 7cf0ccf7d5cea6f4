"""Corpus formats, each in a file; `text/corpus.py` has their table."""
