"""Tags by which runs, models and versions are found again."""

from __future__ import annotations

KEY = "fourstage.key"  # of the artifact a run, model or version holds
KIND = "fourstage.kind"  # "lifecycle" or "stage"
DIGEST = "fourstage.digest"  # of the outputs; with the key it says which weights a thing holds
HOME = "fourstage.home"  # the home that opened a run or began to upload a model
STAGE = "fourstage.stage"
RECIPE = "fourstage.recipe"
NOTE = "mlflow.note.content"  # what a run's page shows as its description
REQUEST = "fourstage.request"  # told from all others where its answer is lost
FILES = "fourstage.files"  # digest of the listing of a model's files
