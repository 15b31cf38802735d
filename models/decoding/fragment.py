"""An encoder–decoder that writes a fragment of a text where it stands (MASS)."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.decoding.reader import Output, ReadingApart
from models.keras_ops import ops
from models.layers.cache import stacked
from models.layers.embedding import positions_of_tokens


class FragmentReading(ReadingApart):
    """What a `CachedReader` is made of whose texts are fragments of their prompts.

    The fragment is a run of [MASK] in the prompt. A text begins with the token before it, stands
    where it stands, and attends to the prompt without it.

    Args:
        network: The network.
        output: What predicts tokens from its last states.
        blank: Id of [MASK].
    """

    def __init__(self, network: Any, output: Output, blank: int):
        super().__init__(network, output, begin=(blank,))  # one token; which one, the prompt says

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (P, T), and the token before each fragment."""
        ids, mask = (ops.convert_to_tensor(x, "int32") for x in (token_ids, padding_mask))
        of_prompt = self._network.memorised({keys.TOKEN_IDS: ids, keys.PADDING_MASK: mask})
        hidden = ops.cast(ids == self.begin[0], "int32")
        before = ops.argmax(hidden, axis=1) - 1  # of several places the first
        begun = ops.take_along_axis(ids, before[:, None], axis=1)
        seen = mask * (1 - hidden)
        logits, new = self._write(begun, ops.ones_like(begun), [], of_prompt, seen)
        return [logits, new, stacked(of_prompt), seen]

    def _places(self, target_mask: Any, prompt_mask: Any) -> dict[str, Any]:
        """Where the last token of each text stands in its prompt, by what that does not see."""
        begun = ops.cumsum(prompt_mask, axis=1) > 0
        gaps = ops.cumsum(ops.cast(begun, "int32") * (1 - prompt_mask), axis=1)
        before = ops.sum(prompt_mask * ops.cast(gaps == 0, "int32"), axis=1, keepdims=True) - 1
        own = positions_of_tokens(target_mask)[:, -1:]
        each = ops.reshape(own, (ops.shape(before)[0], -1)) + before
        return {keys.TARGET_POSITIONS: ops.reshape(each, (-1, 1))}
