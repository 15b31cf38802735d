"""Models, training and evaluation. Independent of Prefect, MLflow and contracts."""
