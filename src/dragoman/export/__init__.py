"""Step 9 elsewhere: a trained model in the formats of other runtimes."""
