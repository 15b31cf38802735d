"""Fine-tuning heads, one per file; the same protocol as objectives."""
