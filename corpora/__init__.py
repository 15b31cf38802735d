"""Text: from files to clean, deduplicated, tokenised documents. Plain functions."""
