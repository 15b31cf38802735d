"""The model people get for texts that are written: raw text in, a text for each text out.

MLflow copies this file, `models/served` and the search of `models/decoding`, under another name,
beside the model and runs them there, so it may import nothing else of this project.
"""

import json
from pathlib import Path

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Prediction(BaseModel):
    """The prediction for one text.

    Attributes:
        text: The text that was written.
        score: Its probability, 0-1.
        answer: The text as JSON, a list of one.
    """

    text: str
    score: float
    answer: str


class WritingModel(PythonModel):
    """A SavedModel with network and tokenizer, and what is known of its head."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables exist only as long as the loaded object."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])
        self.head = json.loads(Path(context.artifacts["head"]).read_text(encoding="utf-8"))

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, context: PythonModelContext, model_input: list[str], params: dict | None = None
    ) -> list[Prediction]:
        """Write a text for each text."""
        from models.served.texts import predict_texts

        return predict_texts([model_input], self.loaded, self.head)  # type: ignore[return-value]


set_model(WritingModel())
