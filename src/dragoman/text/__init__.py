"""Steps 1 to 3: text in, token ids out. Nothing here imports torch."""
