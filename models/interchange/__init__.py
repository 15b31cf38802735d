"""Import and export of models in other projects' formats."""
