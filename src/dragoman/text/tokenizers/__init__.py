"""Steps 2 and 3: tokenizers behind one interface (`base`), each in a file; `pair` has their table."""
