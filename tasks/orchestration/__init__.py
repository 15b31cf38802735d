"""Prefect beside the tasks: names, logs, states, events, deployments, runs whose process died."""
