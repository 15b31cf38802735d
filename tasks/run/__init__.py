"""A recipe being run: its work, its pages and its records, start to promotion."""
