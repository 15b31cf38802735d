"""The registered model: raw text in; label, score and the probability of every label out.

MLflow copies this file into the model and runs it there ("models from code"). It must therefore not
import this project: it needs only tensorflow, tensorflow-text and mlflow.
"""

import json
from pathlib import Path

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel

AT_ONCE = 32  # texts that are read together: memory grows with them and with the longest


class Prediction(BaseModel):
    """The prediction for one text.

    Attributes:
        label: The likeliest label.
        score: Its probability, 0-1.
        probabilities: Probability of every label, summing to 1.
    """

    label: str
    score: float
    probabilities: dict[str, float]


class TextModel(PythonModel):
    """A SavedModel with tokenizer and network, and the names of its labels."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables live only as long as the loaded object does."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])
        # Not `loaded.serve`, which looks for the trace that suits its arguments in every call.
        self.answer = self.loaded.signatures["serving_default"]
        labels = Path(context.artifacts["labels"]).read_text(encoding="utf-8")
        self.labels: list[str] = json.loads(labels)

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, context: PythonModelContext, model_input: list[str], params: dict | None = None
    ) -> list[Prediction]:
        """Predict a label for every text."""
        import tensorflow

        rows: list[list[float]] = []
        for first in range(0, len(model_input), AT_ONCE):
            # Half a surrogate pair, such as of an emoji that was cut, is dropped as in training.
            encoded = [
                text.encode("utf-8", "ignore") for text in model_input[first : first + AT_ONCE]
            ]
            texts = tensorflow.constant(encoded)
            (answer,) = self.answer(texts=texts).values()
            rows += answer.numpy().tolist()  # (B, N)
        return [self._prediction(row) for row in rows]  # type: ignore[misc]

    def _prediction(self, row: list[float]) -> dict:
        """One prediction as a plain dictionary, which the scoring server can write as JSON."""
        score = max(row)
        return {
            "label": self.labels[row.index(score)],
            "score": score,
            "probabilities": dict(zip(self.labels, row, strict=True)),
        }


set_model(TextModel())
