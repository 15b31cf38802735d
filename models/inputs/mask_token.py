"""[MASK], for objectives that hide tokens behind it."""

from __future__ import annotations

from fourstage.errors import RecipeError
from models.protocols import Tokenizer


def check_mask(tokenizer: Tokenizer, where: str) -> None:
    """Refuse a tokenizer in which another special token plays [MASK].

    A published tokenizer may have none of its own: GPT-2's only special token ends a text, and T5's
    and Marian's <unk> stands for what cannot be read.

    Args:
        tokenizer: The recipe's tokenizer.
        where: What hides tokens, such as ``objectives.masked_lm``.

    Raises:
        RecipeError: [MASK] is [PAD], [UNK], [CLS] or [SEP], too.
    """
    others = {
        "[PAD]": tokenizer.pad_id,
        "[UNK]": tokenizer.unknown_id,
        "[CLS]": tokenizer.cls_id,
        "[SEP]": tokenizer.sep_id,
    }
    same = [name for name, token in others.items() if token == tokenizer.mask_id]
    if same:
        raise RecipeError(
            f"{where}: expected a tokenizer with a [MASK] of its own, got one whose token"
            f" {tokenizer.mask_id} is {' and '.join(same)}, too; start from a network whose"
            " tokenizer has one, or learn another tokenizer"
        )
