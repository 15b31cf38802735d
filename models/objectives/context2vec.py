"""context2vec: is a word the one that stands in its context, or a noise word?

    token_ids   [CLS]  he   plays  the   piano  [SEP]
    asked of           he   plays  the   piano          each beside noise words: cat, red, run …

The forward state before a place and the backward one after it become one vector c by a layer of
ReLUs and a linear one. A word w has a vector of its own, t: the loss of a place is
-log σ(c · t_w) - Σ log σ(-c · t_n) over its noise words n, drawn by a power of their frequency. As
in word2vec, a noise word that is the word itself does not count.

Reference:
    Melamud et al. 2016, https://aclanthology.org/K16-1006 (section 2.2, equations 3 and 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.loss import binary_cross_entropy
from models.layers.projection import kernel_initializer, projection
from models.layers.scorer import Scored, ScorerLayer
from models.layers.slices import part
from models.layers.token_scores import tied_logits
from models.protocols import Batch, Context, Index, TokenisedCorpus
from models.vectors.outputs import NegativeSampling

NEEDS = ("two_directions",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
ALONE = True  # noise is drawn by the frequencies of the text that it chooses itself
MEASURED = {}
PER_TOKEN = False
KEEPS_INPUT = True

NOISE_IDS = "noise_ids"  # (B, T - 2, K) int32
WORD_SCORES = "word_scores"  # (B, T - 2, V) float32, how well each word fits each place


class Context2Vec(Windows):
    """Both halves of context2vec.

    Rows are full windows over the corpus; beside a head, the row's own tokens are asked of. Special
    tokens are not asked of, and are no noise.

    Args:
        context: The stage's constants.
        noise_words: K, for each word.
        noise_power: Exponent of a word's frequency.
        across_documents: Whether a row continues with the next document where one ends.

    Raises:
        RecipeError: There are no noise words.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        noise_words: int = 10,
        noise_power: float = 0.75,
        across_documents: bool = True,
    ):
        if noise_words < 1:
            raise RecipeError(
                f"objectives.context2vec.noise_words: expected 1 or more, got {noise_words}"
            )
        self.context = context
        self.noise_words, self.noise_power = noise_words, noise_power
        self.across_documents = across_documents
        self._special = np.array(context.tokenizer.special_ids)
        self._weighed: list[tuple[TokenisedCorpus, float]] = []
        rows = context.rows
        self._frequencies = self._counts(
            () if rows is None else (text for i in range(len(rows)) for text in rows.texts(i))
        )

    def weigh(self, corpora: Sequence[tuple[TokenisedCorpus, float]]) -> None:
        """Read corpora for the frequencies of words: the share of each counts, not its length.

        Args:
            corpora: (corpus, share of the stage's tokens); shares need not sum to 1.

        Raises:
            ContractViolation: There are no words that the tokenizer knows.
        """
        if list(corpora) == self._weighed:  # each phase asks anew
            return
        self._weighed = list(corpora)
        counts = [self._counts(c.document(i)[0] for i in range(len(c))) for c, _ in corpora]
        words, shares = sum(each.sum() for each in counts), sum(share for _, share in corpora)
        weights = [
            share / shares * words / max(1.0, each.sum())
            for each, (_, share) in zip(counts, corpora, strict=True)
        ]
        self._frequencies = np.sum([w * c for w, c in zip(weights, counts, strict=True)], axis=0)
        self._noise()  # refuses text of unknown words only, before any batch

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Full windows; a corpus that was not weighed counts as much as each other one."""
        # Each pass asks anew. Noise must not depend on how many passes a process has begun.
        if not any(corpus is each for each, _ in self._weighed):
            self.weigh([*self._weighed, (corpus, 1.0)])
        return super().index(corpus, rng)

    def _counts(self, texts: Iterable[np.ndarray]) -> np.ndarray:
        """(V,) how often each word is there; 0 for special tokens."""
        counts = np.zeros(self.context.tokenizer.vocabulary_size)
        for ids in texts:
            counts += np.bincount(ids, minlength=len(counts))
        counts[self._special] = 0
        return counts

    def _noise(self) -> NegativeSampling:
        return NegativeSampling(self._frequencies, self.noise_words, self.noise_power)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the words between two tokens, their loss weights and their noise words."""
        real, ids = batch[keys.PADDING_MASK], batch[keys.TOKEN_IDS]
        labels = ids[..., 1:-1]
        between = real[..., :-2] * real[..., 1:-1] * real[..., 2:]
        noise = self._noise()
        return batch | {
            keys.INNER_LABELS: labels,
            keys.INNER_WEIGHTS: (between * ~np.isin(labels, self._special)).astype(np.float32),
            NOISE_IDS: noise.draw((*labels.shape, self.noise_words), rng).astype(np.int32),
        }

    def attach(self, network: Any) -> _Context2VecScorer:
        """Make the layers above the states, and the words' own vectors."""
        return _Context2VecScorer(network, self.context.tokenizer.vocabulary_size)


class _Context2VecScorer(ScorerLayer):
    """Vectors of contexts, held against vectors of words."""

    def __init__(self, network: Any, vocabulary_size: int):
        dtype = network.dtype_policy.name
        super().__init__(name="context2vec", dtype=dtype, autocast=False)
        self.vocabulary_size, self.width = vocabulary_size, network.hidden_dim
        self.hidden = projection(self.width, name="hidden", dtype=dtype, stddev=None)
        self.output_layer = projection(self.width // 2, name="output", dtype=dtype, stddev=None)
        self.word_table: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.hidden.build((None, None, self.width))
        self.output_layer.build((None, None, self.width))
        self.word_table = self.add_weight(
            shape=(self.vocabulary_size, self.width // 2),
            initializer=kernel_initializer((self.width // 2) ** -0.5),
            name="word_table",
            autocast=False,
        )
        self.built = True

    def contexts(self, states: Any) -> Any:
        """(B, T, 2D) states of both directions → (B, T - 2, D) float32, of each inner place."""
        forward, backward = ops.split(states, 2, axis=-1)
        inner = ops.shape(states)[1] - 2
        around = ops.concatenate([part(forward, 0, inner), part(backward, 2)], axis=-1)
        return ops.cast(self.output_layer(ops.relu(self.hidden(around))), "float32")

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss of each word and its noise words, and the share of questions answered right."""
        contexts = self.contexts(outputs[keys.SEQUENCE_OUTPUT])
        predictions = {
            WORD_SCORES: tied_logits(contexts, self.word_table, None, self.compute_dtype)
        }
        if keys.INNER_LABELS not in batch:
            return {}, predictions
        labels, weights, noise = (
            batch[name] for name in (keys.INNER_LABELS, keys.INNER_WEIGHTS, NOISE_IDS)
        )
        weights = self.weighted(batch, weights)
        length = ops.shape(labels)[-1]  # a head may read a row's texts by themselves, (B, C, T)
        labels, weights = (ops.reshape(each, (-1, length, 1)) for each in (labels, weights))
        noise = ops.reshape(noise, (-1, length, noise.shape[-1]))
        words = ops.take(
            ops.convert_to_tensor(self.word_table), ops.concatenate([labels, noise], -1), 0
        )
        logits = ops.sum(contexts[:, :, None] * words, axis=-1)  # (B, T - 2, 1 + K)
        right = ops.concatenate([ops.ones_like(labels), ops.zeros_like(noise)], axis=-1)
        counted = ops.concatenate([ops.ones_like(labels), ops.cast(noise != labels, "int32")], -1)
        scores = binary_cross_entropy(
            logits, ops.cast(right, "float32"), ops.cast(counted, "float32") * weights
        )
        nats, _ = scores["loss"]
        # For each word, not for each question, as the loss of word vectors.
        return {**scores, "loss": (nats, ops.sum(weights))}, predictions
