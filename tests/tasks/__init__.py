"""Tests of the steps."""
