"""Networks, one a file; the name in a recipe is the name of the file."""
