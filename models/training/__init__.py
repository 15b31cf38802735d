"""From batches to weights: the loop, the optimizer, checkpoints."""
