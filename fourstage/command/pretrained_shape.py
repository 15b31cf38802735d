"""The network that a first recipe starts from: its shape, and the rates that suit its width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.command.first_recipe import Shape
from fourstage.errors import RecipeError, located
from models import catalogue

if TYPE_CHECKING:
    from models.interchange.huggingface import PretrainedNetwork

# (largest width, peak learning rate of a stage that reads text, of fine-tuning): BERT's and those
# of its smaller sizes (Devlin et al. 2019, arXiv 1810.04805, A.3; Turc et al. 2019, arXiv
# 1908.08962, 4.2), rounded down to what batches of 16 rows can take.
RATES = ((256, 1.0e-3, 3.0e-4), (512, 4.0e-4, 1.0e-4), (1 << 20, 1.0e-4, 3.0e-5))
LONGEST = 256  # tokens of a window on two cores


def pretrained_shape(address: str) -> Shape:
    """The shape of a network that was trained elsewhere.

    Args:
        address: ``hf:owner/name@commit`` or ``folder:path``.

    Raises:
        RecipeError: There is no such network, it can't be read, or nothing here trains it on text.
        ContractViolation: One of its files is malformed.
        EnvironmentFault: The hub can't be reached, and the files have not been downloaded before.
    """
    from models.interchange.huggingface import pooled_by_mean
    from models.interchange.pretrained_network import read_start
    from models.interchange.published import published_folder

    if address.startswith("models:/"):
        raise RecipeError(
            f"--init: expected hf:owner/name@commit or folder:path, got {address[:80]}; name a"
            " registered version in the recipe: {stage: general, init: models:/NAME@champion}"
        )
    with located("--init"):
        folder = published_folder(address)
        found = read_start(folder, weights=False)
        summary = "mean" if pooled_by_mean(folder) else "network"
    address = whole_address(address)
    objective = _objective(found)
    settings = dict(found.settings)
    vocabulary, width = settings.pop("vocabulary_size"), settings["hidden_dim"]
    general, finetune = next(rates[1:] for rates in RATES if width <= rates[0])
    return Shape(
        settings,
        name=f"{found.family} of width {width}, from {address}",
        general=general,
        finetune=finetune,
        longest=min(LONGEST, settings.get("max_sequence_length") or LONGEST),
        family=found.family,
        vocabulary=vocabulary,
        objective=f"{objective}: {{}}",
        init=address,
        summary=summary,
    )


def whole_address(address: str) -> str:
    """The address, by which a folder is found from wherever the recipe lies."""
    from models.interchange.published import FOLDER

    if not address.startswith(FOLDER):
        return address
    return f"{FOLDER}{Path(address.removeprefix(FOLDER)).resolve()}"


def _objective(found: PretrainedNetwork) -> str:
    """The objective whose head came with the network, or the usual one of such a network.

    Raises:
        RecipeError: It is no Transformer that reads or writes text.
    """
    known = catalogue.names("objectives")
    said = {name: catalogue.literals("objectives", name) for name in known}
    provided = catalogue.provided(found.family)
    able = [name for name in known if said[name]["CHOOSES"] and provided >= {*said[name]["NEEDS"]}]
    if not found.tokenizer.sentinel_ids:
        able = [name for name in able if "HIDES_SPANS" not in said[name]]
    usual = [name for name in able if "CONTINUES" in said[name]]
    if not usual:
        raise RecipeError(
            f"--init: expected a Transformer that reads text, got a {found.family}; write the"
            " recipe by hand (docs/concepts.md)"
        )
    # Objectives of whole rows, such as the next sentence, come beside one of tokens.
    of_tokens = [name for name in able if "pooled_output" not in said[name]["NEEDS"]]

    def generality(objective: str) -> int:
        """How many families it suits; an XLNet suits masked_lm, too, but has one of its own."""
        return len(catalogue.providing(*said[objective]["NEEDS"]))

    for candidates in (usual, of_tokens):
        if own := [name for name in candidates if name in found.heads]:
            return min(own, key=generality)
    return min(usual, key=lambda name: ("HIDES_SPANS" not in said[name], generality(name)))
