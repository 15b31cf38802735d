"""Prefect infrastructure: names, logs, states, events, deployments, orphaned runs."""
