"""Model card for Hugging Face: README.md with YAML front matter."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.catalogue import provided
from tasks.reports.model_card import CALLING
from tasks.store.model_facts import ModelFacts

README = "README.md"
SPDX = re.compile(r"[A-Za-z0-9]+([.-][A-Za-z0-9]+)+|MIT|ISC")  # licence names, not sentences
TASKS = {
    "ForSequenceClassification": "text-classification",
    "ForMaskedLM": "fill-mask",
    "LMHeadModel": "text-generation",
    "MTModel": "translation",
    "Model": "feature-extraction",  # a network alone
}  # the first end of a class's name that fits


def write_hub_card(
    facts: ModelFacts, card: str, folder: Path, left_out: Sequence[str] = ()
) -> None:
    """Write README.md into a Hugging Face folder.

    Args:
        facts: Facts about the network.
        card: Its model card in Markdown.
        folder: The folder, with config.json.
        left_out: Notes about what the card tells of and the folder lacks.
    """
    import yaml

    (architecture,) = json.loads((folder / "config.json").read_text("utf-8"))["architectures"]
    front = yaml.safe_dump(_front(facts, architecture), sort_keys=False, allow_unicode=True)
    told = card.split(CALLING)[0].rstrip()
    if left_out:
        scored = "The scores above are the whole model's.\n\n" if "\n## Scores\n" in told else ""
        lacks = "\n".join(f"- {note}" for note in left_out)
        told += f"\n\n## Not in this folder\n\n{scored}{lacks}"
    text = f"---\n{front}---\n\n{told}\n\n{_calling(architecture, folder.name)}"
    (folder / README).write_text(text, encoding="utf-8")


def _front(facts: ModelFacts, architecture: str) -> dict[str, Any]:
    languages = facts.ancestry.languages()
    task = next((task for end, task in TASKS.items() if architecture.endswith(end)), None)
    if facts.family and "regions" in provided(facts.family):
        task = None  # theirs asks for pictures
    return {
        **({"language": languages} if languages else {}),
        **_licence(facts.ancestry.licences()),
        "library_name": "transformers",
        **({"pipeline_tag": task} if task else {}),
        "tags": ["fourstage", *([facts.family] if facts.family else [])],
    }


def _licence(licences: list[str]) -> dict[str, Any]:
    """Licences of the texts: SPDX names if all have one, otherwise free text."""
    if licences and all(SPDX.fullmatch(licence) for licence in licences):
        return {"license": [licence.lower() for licence in licences]}
    return {"license": "other", "license_name": "; ".join(licences) or "none named"}


def _calling(architecture: str, folder: str) -> str:
    return f"""{CALLING}

```python
import transformers

tokenizer = transformers.AutoTokenizer.from_pretrained("{folder}")
network = transformers.{architecture}.from_pretrained("{folder}")
```
"""
