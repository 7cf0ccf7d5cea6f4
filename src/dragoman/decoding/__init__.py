"""Step 8: encode once and search. Knows `models.base` and no concrete model."""

from dragoman.decoding.search import DecodingConfig, Hypothesis, Specials, search

__all__ = ["DecodingConfig", "Hypothesis", "Specials", "search"]
