"""Running a recipe: its steps, Prefect pages, MLflow records, registration."""
