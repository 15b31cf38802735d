"""The steps: one durable Prefect task a file. MLflow lives here and only here."""
