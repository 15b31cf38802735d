"""The model people get for numbers, sets of labels and written texts: raw text in, answers out.

Also for labels, if its network reads the entities that a text names.

MLflow copies this file and, under another name, `models/served` with its search and what links
names beside the model and runs them there, so it may import nothing else of this project.
"""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Prediction(BaseModel):
    """The prediction for one row, with those of these that its kind of answer has.

    Attributes:
        score: Its probability, 0-1.
        answer: The answer as JSON.
        number: A number.
        labels: A set of labels.
        probabilities: Probability of each label.
        label: The likeliest label.
        text: A text that was written.
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
    ended: bool | None = None
    cut: bool | None = None
    error: str | None = None


class RowsModel(PythonModel):
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
        self, context: PythonModelContext, model_input: list[str], params: dict | None = None
    ) -> list[Prediction]:
        """Predict the answer to each text."""
        import tensorflow

        from models.served.named import named_values
        from models.served.pieces import encoded
        from models.served.rows import in_parts, row_answer
        from models.served.texts import predict_texts

        if not model_input:
            return []
        if self.head["answers"] == "text":
            return predict_texts([model_input], self.loaded, self.head)  # type: ignore[return-value]

        def serve(texts: list[str]) -> Any:
            if self.link:
                return named_values([texts], self.loaded, self.link)
            return self.loaded.serve(tensorflow.constant(encoded(texts))).numpy()

        values = in_parts(serve, model_input)
        return [row_answer(self.head["answers"], row, self.head) for row in values]  # type: ignore[misc]


set_model(RowsModel())
