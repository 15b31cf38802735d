"""Training: the loop, the optimizer, checkpoints."""
