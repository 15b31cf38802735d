"""Counting n-grams of a corpus larger than memory, and what their counts say of text."""
