"""The numbers: run by hand, one file a question."""
