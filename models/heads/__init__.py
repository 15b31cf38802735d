"""Fine-tuning heads, one a file; the same protocol as objectives."""
