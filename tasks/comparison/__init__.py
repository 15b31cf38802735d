"""Comparisons of recipes, runs and versions."""
