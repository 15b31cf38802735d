"""Recipes, runs and versions held against each other."""
