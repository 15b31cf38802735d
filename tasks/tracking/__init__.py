"""MLflow tracking: connection, runs, metrics, logged models and their files."""
