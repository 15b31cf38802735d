"""Hugging Face's names for our families: one file per family, found by its name."""
