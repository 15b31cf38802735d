"""A recipe's steps as Prefect tasks, with their store, tracking, registry and reports.

Only this package imports MLflow. Each subpackage imports those after it: comparison, run, planning,
registry and steps, tracking, reports, store and orchestration.
"""
