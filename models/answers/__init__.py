"""Kinds of answer a row can have, and how answers are scored; one a file, named by heads."""
