"""Smoke test: load a model as its users do and predict two sentences, in a separate process.

Run as ``python -I tasks/registry/smoke_test.py``: isolated, so that no code of this project is
importable. It imports its libraries, then reads the model's folder from standard input, one line of
JSON. It knows no server. Prints one line of JSON.
"""

import gc
import json
import sys
import time
from pathlib import Path

SENTENCES = ["This is a sentence.", "这是一个句子。"]
# Keras and TensorFlow import them where they are installed, which takes a third of the time. No
# packaged model needs them.
UNUSED = ("sklearn", "matplotlib", "huggingface_hub", "jax")


def main() -> None:
    """Load the model, predict, and check the format of the answers."""
    gc.set_threshold(10_000)  # as the command does
    import mlflow.pyfunc

    hidden = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  None: as if not installed
    import tensorflow_text  # noqa: F401  every packaged model needs it

    for name in hidden:
        del sys.modules[name]
    asked = sys.stdin.readline()
    if not asked:
        return  # the parent process has ended
    began = time.monotonic()
    folder = json.loads(asked)
    model = mlflow.pyfunc.load_model(folder)
    loaded = time.monotonic()
    rows = SENTENCES
    schema = str(model.metadata.get_input_schema())
    if "picture" in schema:
        # Its own example has a picture, and as many texts as its rows have.
        (example,) = json.loads((Path(folder) / "input_example.json").read_text("utf-8"))
        rows = [{**example, "text": sentence} for sentence in SENTENCES]
    elif "choices" in schema:
        rows = [{"text": sentence, "choices": SENTENCES} for sentence in SENTENCES]
    elif "text_pair" in schema:
        rows = [{"text": sentence, "text_pair": sentence} for sentence in SENTENCES]
    answers = model.predict(rows)
    model.predict(rows[:1])
    last = time.monotonic()
    model.predict(rows[:1])
    if len(answers) != len(SENTENCES):
        sys.exit(f"{len(SENTENCES)} texts were asked, {len(answers)} answers came")
    for answer in answers:
        if not isinstance(answer, dict) or not {"label", "answer"} & set(answer):
            sys.exit("an answer without label")
        if answer.get("error"):
            sys.exit(f"no answer: {answer['error']}")
        if "score" not in answer:
            sys.exit("an answer without score")
        if answer["score"] is not None and not 0 <= answer["score"] <= 1:
            sys.exit(f"a score of {answer['score']}")
        total = sum(answer.get("probabilities", {"": 1.0}).values())
        if ("label" in answer or "choices" in schema) and abs(total - 1) > 1e-3:
            sys.exit(f"probabilities that sum to {total}")
    facts = {
        "load_seconds": round(loaded - began, 2),
        "predict_ms": round(1000 * (time.monotonic() - last), 2),
        "answers": len(answers),
    }
    sys.stdout.write(json.dumps(facts) + "\n")


main()
