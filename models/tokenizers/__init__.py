"""Tokenizers, one scheme per file, on tensorflow-text ops."""
