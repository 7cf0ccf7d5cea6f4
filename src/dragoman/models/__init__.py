"""The model families (step 6)."""
