"""MLflow's runs and logged models: the server, what is logged, published and found again."""
