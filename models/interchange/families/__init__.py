"""Hugging Face's names for our families: one file a family, found by its name."""
