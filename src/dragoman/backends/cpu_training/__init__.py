"""Training on a CPU in C: products and loops, in bfloat16 (AVX-512) and, where it is asked for, in float32 (AVX2)."""
