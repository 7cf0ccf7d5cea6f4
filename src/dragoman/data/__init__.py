"""From pairs of text to padded batches: ids on disk, the batch plan, and the batch (steps 3 to 5)."""

# No imports here, on purpose: processes that encode a corpus import `dragoman.data.store` and must not pay for torch.
