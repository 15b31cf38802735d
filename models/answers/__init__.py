"""Kinds of answer and their metrics, one per file; a head names its kind."""
