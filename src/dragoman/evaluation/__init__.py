"""A run or an output judged."""
