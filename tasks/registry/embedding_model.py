"""The model people get for embeddings: a text in, its vector out; two texts in, their similarity.

MLflow copies this file and `models/served`, under another name, beside the model and runs them
there, so it may import nothing else of this project.
"""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Texts(BaseModel):
    """A row.

    Attributes:
        text: A text.
        text_pair: The text to compare it with; None to get the vector of the first.
    """

    text: str
    text_pair: str | None = None


class Prediction(BaseModel):
    """The prediction for one row.

    Attributes:
        vector: The text's vector, of length 1: the dot product of two is their cosine. Only of a
            row with one text.
        number: The similarity of the two texts, in the units of the numbers learnt from.
        answer: The number as JSON.
        score: None; similarities have no probability.
    """

    vector: list[float] | None = None
    number: float | None = None
    answer: str | None = None
    score: float | None = None


class EmbeddingModel(PythonModel):
    """A SavedModel with network and tokenizer."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables exist only as long as the loaded object."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])
        self.head = json.loads(Path(context.artifacts["head"]).read_text(encoding="utf-8"))

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, context: PythonModelContext, model_input: list[Texts], params: dict | None = None
    ) -> list[Prediction]:
        """The vector of each single text, and the similarity of each pair."""
        import tensorflow

        from models.served.pieces import encoded
        from models.served.rows import in_parts, row_answer

        def embed(texts: list[str]) -> Any:
            return self.loaded.embed(tensorflow.constant(encoded(texts))).numpy()

        def serve(*columns: list[str]) -> Any:
            return self.loaded.serve(*map(tensorflow.constant, encoded(columns))).numpy()

        single = [row.text for row in model_input if row.text_pair is None]
        pairs = [(row.text, row.text_pair) for row in model_input if row.text_pair is not None]
        vectors = iter(in_parts(embed, single))
        numbers = iter(in_parts(serve, *([pair[side] for pair in pairs] for side in range(2))))
        return [
            {"vector": next(vectors).tolist(), "score": None}
            if row.text_pair is None
            else row_answer("number", next(numbers), self.head)
            for row in model_input
        ]  # type: ignore[return-value]


set_model(EmbeddingModel())
