"""The model people get for rows with two texts: pairs in; labels, numbers or passages' parts out.

MLflow copies this file and, under another name, `models/served` with what links names beside the
model and runs them there, so it may import nothing else of this project.
"""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Pair(BaseModel):
    """A row.

    Attributes:
        text: The first text; a question.
        text_pair: The second text; the passage that answers it.
    """

    text: str
    text_pair: str


class Prediction(BaseModel):
    """The prediction for one row, with those of these that its kind of answer has.

    Attributes:
        score: Its probability, 0-1.
        answer: The answer as JSON.
        number: A number.
        labels: A set of labels.
        probabilities: Probability of each label.
        label: The likeliest label.
        text: The part of the passage that answers, None for none; a text that was written.
        start: Its first character.
        end: The character after its last.
        ended: Whether a text that was written ended by itself, not at its largest length.
        cut: Whether what was asked is longer than what is read of it, where a text is written.
        error: Why there is no answer: a text that is to be read behind a prefix brings one along.
    """

    score: float | None = None
    answer: str | None = None
    number: float | None = None
    labels: list[str] | None = None
    probabilities: dict[str, float] | None = None
    label: str | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    ended: bool | None = None
    cut: bool | None = None
    error: str | None = None


class PairsModel(PythonModel):
    """A SavedModel with network and tokenizer, and what is known of its head."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables exist only as long as the loaded object."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])
        self.head = json.loads(Path(context.artifacts["head"]).read_text(encoding="utf-8"))
        self.link = None
        if "entities" in context.artifacts:
            from corpora.linking import linker

            names = Path(context.artifacts["entities"]).read_text(encoding="utf-8")
            self.link = linker(json.loads(names))

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, context: PythonModelContext, model_input: list[Pair], params: dict | None = None
    ) -> list[Prediction]:
        """Predict the answer to each pair."""
        import tensorflow

        from models.served.named import named_values
        from models.served.parts import predict_parts
        from models.served.pieces import encoded
        from models.served.rows import in_parts, row_answer
        from models.served.texts import predict_texts

        if not model_input:
            return []
        pairs = [(pair.text, pair.text_pair) for pair in model_input]

        def count(words: Any) -> Any:
            return self.loaded.count(tensorflow.constant(encoded(words))).numpy()

        def read(*texts: Any) -> Any:
            found = self.loaded.read(*map(tensorflow.constant, encoded(texts)))
            return {name: value.numpy() for name, value in found.items()}

        if self.head["reads_words"]:
            return predict_parts(pairs, count, read, self.head)  # type: ignore[return-value]
        if self.head["answers"] == "text":
            return predict_texts(list(zip(*pairs, strict=True)), self.loaded, self.head)  # type: ignore[return-value]

        def serve(*columns: Any) -> Any:
            if self.link:
                return named_values(columns, self.loaded, self.link)
            return self.loaded.serve(*map(tensorflow.constant, encoded(columns))).numpy()

        values = in_parts(serve, *map(list, zip(*pairs, strict=True)))
        return [row_answer(self.head["answers"], row, self.head) for row in values]  # type: ignore[misc]


set_model(PairsModel())
