"""The story: what happens, in which order. Flows only; no tensors, no files."""
