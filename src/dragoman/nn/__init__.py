"""The blocks: attention, positions, norms, masks, feed-forward, embeddings, dropout. They take ints and modules, never a config."""
