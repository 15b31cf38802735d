"""Evaluation: predictions, metrics, baselines and statistical comparison of models."""
