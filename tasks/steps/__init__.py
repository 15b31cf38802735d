"""The steps: one durable Prefect task a file, from files to the served model."""
