"""Training: loss, optimisation, the loop and its log."""
