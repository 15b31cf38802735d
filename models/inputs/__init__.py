"""From tokenised text to batches: segments, rows, noise. NumPy and Grain only."""
