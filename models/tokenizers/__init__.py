"""Text to ids and back: one scheme a file, on tensorflow-text ops."""
