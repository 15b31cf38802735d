"""The model people get for rows with pictures: texts and a picture's file in, answers out.

MLflow copies this file and, under another name, `models/served` and what finds regions beside the
model and runs them there, so it may import nothing else of this project. A picture comes as base64
and never as a path: whoever may ask must not be able to read files.
"""

import json
from pathlib import Path
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class PicturedRow(BaseModel):
    """A row.

    Attributes:
        text: The text.
        picture: A PNG or JPEG file, as base64.
        text_pair: The second text, if the model's rows have two.
    """

    text: str
    picture: str
    text_pair: str | None = None


class Prediction(BaseModel):
    """The prediction for one row, with those of these that its kind of answer has.

    Attributes:
        score: Its probability, 0-1.
        answer: The answer as JSON.
        number: A number.
        labels: A set of labels.
        probabilities: Probability of each label.
        label: The likeliest label.
        error: Why there is no answer: what is wrong with the picture.
    """

    score: float | None = None
    answer: str | None = None
    number: float | None = None
    labels: list[str] | None = None
    probabilities: dict[str, float] | None = None
    label: str | None = None
    error: str | None = None


class PicturesModel(PythonModel):
    """A SavedModel with network and tokenizer, and what is known of its head."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables exist only as long as the loaded object."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])
        self.head = json.loads(Path(context.artifacts["head"]).read_text(encoding="utf-8"))

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        context: PythonModelContext,
        model_input: list[PicturedRow],
        params: dict | None = None,
    ) -> list[Prediction]:
        """Predict the answer to each row; one with a faulty picture gets ``error``.

        Raises:
            ValueError: Rows have one text and the model's have two, or the other way round.
        """
        import tensorflow

        from corpora.encoded_pictures import regions_of_encoded
        from corpora.regions import NoRegionsError
        from models.served.pictures import predict_pictured
        from models.served.pieces import encoded

        pairs = self.head["pairs"]
        if any((row.text_pair is None) == pairs for row in model_input):
            wanted = "text, text_pair and picture" if pairs else "text and picture alone"
            raise ValueError(f"expected {wanted} in each row")

        def look(picture: str) -> Any:
            try:
                found = regions_of_encoded(picture, self.head["most_regions"])
            except NoRegionsError as error:
                return error.reason
            return found.boxes, found.features

        def serve(*columns: Any) -> Any:
            return self.loaded.serve(*map(tensorflow.constant, encoded(columns))).numpy()

        rows = [(row.text, row.text_pair or "")[: 1 + pairs] for row in model_input]
        pictures = [row.picture for row in model_input]
        return predict_pictured(rows, pictures, look, serve, self.head)  # type: ignore[return-value]


set_model(PicturesModel())
