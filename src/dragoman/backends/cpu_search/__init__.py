"""Translation on a CPU in C: the fast implementation of a Transformer's search."""
