"""A recipe's steps as Prefect tasks, and all that is kept, tracked and told of them.

MLflow lives here and only here. Each room imports those below it: comparison, run, planning,
registry and steps, tracking, reports, store and orchestration.
"""
