"""Training in bfloat16 on processors with AVX-512: products and loops in C."""
