"""Pre-training objectives, one per file: how examples are made and scored."""
