"""The blocks: attention, positions, norms, masks, feed-forward, embeddings, dropout: from ints, never from a config."""
