"""Pre-training objectives, one a file: how examples are made and how they are scored."""
