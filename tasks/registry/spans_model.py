"""The model people get for spans, such as entities: raw text in; spans with type and place out.

MLflow copies this file and `models/served`, under another name, beside the model and runs them
there, so it may import nothing else of this project.
"""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Span(BaseModel):
    """A part of the text.

    Attributes:
        start: Its first character.
        end: The character after its last.
        type: Its type.
        text: The part itself.
    """

    start: int
    end: int
    type: str
    text: str


class Prediction(BaseModel):
    """The prediction for one text.

    Attributes:
        spans: Spans in their order.
        answer: The same as JSON, ``[[start, end, "type"], …]``.
        score: Probability that all tags are correct, 0-1.
    """

    spans: list[Span]
    answer: str
    score: float


class SpansModel(PythonModel):
    """A SavedModel with network and tokenizer, and the tags of its head."""

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
        """Predict the spans of each text."""
        import tensorflow

        from models.served.pieces import encoded
        from models.served.spans import predict_spans

        def count(words: Any) -> Any:
            return self.loaded.count(tensorflow.constant(encoded(words))).numpy()

        def read(words: Any) -> Any:
            found = self.loaded.read(tensorflow.constant(encoded(words)))
            return {name: value.numpy() for name, value in found.items()}

        return predict_spans(model_input, count, read, self.head)  # type: ignore[return-value]


set_model(SpansModel())
