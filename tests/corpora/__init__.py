"""Tests of the text room."""
