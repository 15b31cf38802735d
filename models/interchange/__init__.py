"""Models in other people's formats."""
