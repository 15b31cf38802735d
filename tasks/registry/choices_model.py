"""The model people get for choices: a text with its choices in, the likeliest of them out.

MLflow copies this file and `models/served`, under another name, beside the model and runs them
there, so it may import nothing else of this project.
"""

from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from pydantic import BaseModel


class Question(BaseModel):
    """A row.

    Attributes:
        text: The text.
        choices: Two or more; rows may have unlike numbers of them.
    """

    text: str
    choices: list[str]


class Prediction(BaseModel):
    """The prediction for one row.

    Attributes:
        answer: The number of the likeliest choice, from 0.
        text: The choice itself.
        score: Its probability, 0-1.
        probabilities: Probability of each choice, by number, summing to 1.
    """

    answer: str
    text: str
    score: float
    probabilities: dict[str, float]


class ChoicesModel(PythonModel):
    """A SavedModel with network and tokenizer."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the graph once; its variables exist only as long as the loaded object."""
        import tensorflow
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.loaded = tensorflow.saved_model.load(context.artifacts["saved_model"])

    # MLflow reads the model's signature from these annotations.
    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, context: PythonModelContext, model_input: list[Question], params: dict | None = None
    ) -> list[Prediction]:
        """Predict the choice of each row."""
        import tensorflow

        from models.served.choices import predict_choices
        from models.served.pieces import encoded

        def score(*columns: Any) -> Any:
            return self.loaded.score(*map(tensorflow.constant, encoded(columns))).numpy()

        if not model_input:
            return []
        rows = [(row.text, row.choices) for row in model_input]
        return predict_choices(rows, score)  # type: ignore[return-value]


set_model(ChoicesModel())
