"""Translation: sentence pairs to a scored translator."""
