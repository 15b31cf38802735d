"""Tags that identify runs, models and versions."""

from __future__ import annotations

KEY = "fourstage.key"  # key of the artifact in a run, model or version
KIND = "fourstage.kind"  # "lifecycle", "stage", "package" or "comparison"
DIGEST = "fourstage.digest"  # digest of the outputs; key and digest together identify the weights
HOME = "fourstage.home"  # id of the home that opened a run or began to upload a model
STAGE = "fourstage.stage"
RECIPE = "fourstage.recipe"
TRIAL = "fourstage.trial"  # what a trial of a search tried
NOTE = "mlflow.note.content"  # description on a run's page
REQUEST = "fourstage.request"  # identifies a request, to find its run if the response is lost
FILES = "fourstage.files"  # digest of the listing of a model's files
