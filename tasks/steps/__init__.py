"""The steps as durable Prefect tasks, from source files to the packaged model."""
