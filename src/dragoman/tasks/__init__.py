"""What a batch, a loss and a score are for each kind of model."""
