"""Step 8: encode once and search. Knows `models.base` and no concrete model."""
