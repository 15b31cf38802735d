"""The science: text in, gradients out. Knows nothing of Prefect, MLflow or contracts."""
