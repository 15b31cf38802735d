"""The text: from files to clean, deduplicated, tokenised documents. Plain functions."""
