"""A recurrent decoder: cells one above the other write a target, token by token.

    none        cells read y                        output: the state s of the last cell
    Bahdanau    c from the state before,            output: maxout(W [s; y; c])
                cells read [y; c]
    Luong       cells read y, with feeding [y; o],   output: tanh(W [c; s])
                c from the new state

y is the vector of the token before the one that is predicted, c the mean of the text's vectors by
attention, o the output before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras

from models.keras_ops import ops
from models.layers.projection import projection
from models.layers.recurrent import make_cell, read_along, vectors_of
from models.layers.score_attention import ADDITIVE, DOT, GENERAL, ScoreAttention
from models.layers.slices import part

BAHDANAU, NONE = "bahdanau", "none"
SCORES = {
    BAHDANAU: ADDITIVE,
    "luong_dot": DOT,
    "luong_general": GENERAL,
    "luong_concat": ADDITIVE,
}


class Memory(NamedTuple):
    """What a decoder knows of a text; targets of one text may share it.

    Attributes:
        keys: (P, T, A) float32, what states are held against.
        values: (P, T, N) float32, what is attended to.
        states: (P, D) float32 each, with which a target begins.
    """

    keys: Any
    values: Any
    states: Sequence[Any]


class RecurrentDecoder(keras.layers.Layer):
    """Cells that attend to a text and write a target.

    Its state is that of all cells, from the first to the last, and the output before. Training and
    writing token by token are the same steps.

    Args:
        cell: ``lstm`` or ``gru``.
        num_layers: L, cells one above the other.
        first: Number of the first cell in its name, `block_…`.
        embedding_dim: E, width of a token's vector.
        hidden_dim: D, width of the cells' states and of the output.
        memory_dim: M, width of the vectors that a layer of the encoder gives.
        num_memories: Layers of the encoder that are attended to, with the weights of the top one:
            the text's vectors have the width N = num_memories · M.
        attention: ``bahdanau``, ``luong_dot``, ``luong_general``, ``luong_concat`` or ``none``.
        input_feeding: Whether cells read the output before, too.
        residual: Whether the first cell's state is added to the output.
        own_start: Whether a target begins with tanh(W s) in place of the encoder's states s.
        dropout: Share dropped of what is passed from cell to cell and of the outputs, 0-1.
        dtype: Policy of the products of attention and output; cells are float32.

    Shape:
        x (B, N, E), states (B, D) each, memory of P texts, mask (B, N) or None, attended (P, T)
        or None, where P divides B → states after each token, (B, N, D) float32 each, of which the
        last is the output.

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, 2. Bahdanau et al. 2015, arXiv 1409.0473, A.1 and
        A.2. Luong et al. 2015, arXiv 1508.04025, 3. Several layers, and the residual: Ramachandran
        et al. 2017, arXiv 1611.02683, 2.3. Dropout: Zaremba et al. 2014, arXiv 1409.2329.
    """

    def __init__(
        self,
        *,
        cell: str,
        num_layers: int,
        first: int,
        embedding_dim: int,
        hidden_dim: int,
        memory_dim: int,
        num_memories: int = 1,
        attention: str,
        input_feeding: bool,
        residual: bool = False,
        own_start: bool,
        dropout: float,
        dtype: str,
        name: str = "decoder",
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.embedding_dim, self.hidden_dim, self.memory_dim = embedding_dim, hidden_dim, memory_dim
        self.input_feeding, self.attends_first = input_feeding, attention == BAHDANAU
        self.residual = residual
        self.vectors = vectors_of(cell)
        self.cells = [make_cell(cell, hidden_dim, f"block_{first + n}") for n in range(num_layers)]
        own: dict[str, Any] = {"stddev": None, "use_bias": False, "dtype": dtype}
        self.attention = self.mix = None
        if attention != NONE:
            self.attention = ScoreAttention(
                SCORES[attention], hidden_dim=hidden_dim, memory_dim=memory_dim, dtype=dtype
            )
            pieces = 2 if self.attends_first else 1  # of which maxout takes the larger
            self.mix = projection(pieces * hidden_dim, name="mix", **own)
        self._read_dim = embedding_dim  # what the first cell reads
        attended = num_memories * memory_dim
        self._mixed_dim = hidden_dim + attended  # what the output is made of
        if self.attends_first:
            self._read_dim += attended
            self._mixed_dim += embedding_dim
        elif input_feeding:
            self._read_dim += hidden_dim
        number = num_layers * self.vectors if own_start else 0
        self.starts = [projection(hidden_dim, name=f"start_{n}", **own) for n in range(number)]
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        for number, cell in enumerate(self.cells):
            cell.build((None, self.hidden_dim if number else self._read_dim))
        if self.attention is not None and self.mix is not None:
            self.attention.build()
            self.mix.build((None, self._mixed_dim))
        for start in self.starts:
            start.build((None, self.hidden_dim))
        self.built = True

    @property
    def key_dim(self) -> int:
        """A, width of a memory's keys."""
        return self.memory_dim if self.attention is None else self.hidden_dim

    @property
    def num_states(self) -> int:
        """Number of vectors of the state, the output among them."""
        return len(self.cells) * self.vectors + 1

    def memory(self, values: Any, states: Sequence[Any]) -> Memory:
        """What is computed once a text.

        Args:
            values: (P, T, N) float32, what the encoder's layers give, the top one last.
            states: (P, D) float32 each, its last states, from the first layer to the last.
        """
        if self.starts:
            pairs = zip(self.starts, states, strict=True)
            states = [ops.tanh(ops.cast(start(state), "float32")) for start, state in pairs]
        keys = values[..., -self.memory_dim :]
        keys = keys if self.attention is None else self.attention.keys(keys)
        return Memory(keys, values, [*states, ops.zeros_like(states[0])])

    def call(
        self,
        x: Any,
        states: Sequence[Any],
        memory: Memory,
        mask: Any = None,
        attended: Any = None,  # not `memory_mask`, into which Keras would put masks of its own
        training: bool | None = None,
    ) -> list[Any]:
        """Read tokens of targets."""
        if training and len(self.cells) > 1 and self.dropout.rate:
            # Drawn before the loop, so that its steps are functions of what they are given.
            size = (*ops.shape(x)[:2], (len(self.cells) - 1) * self.hidden_dim)
            kept = self.dropout(ops.ones(size, "float32"), training=True)
            x = ops.concatenate([x, kept], axis=-1)

        def step(before: list[Any], of_token: Any) -> list[Any]:
            return self._step(before, of_token, memory, attended)

        *each, output = read_along(step, states, x, mask)[0]
        return [*each, self.dropout(output, training=training)]

    def _step(self, before: list[Any], of_token: Any, memory: Memory, attended: Any) -> list[Any]:
        """The state after one more token: its vector, and what of other cells is kept if any is."""
        width, first = self.hidden_dim, self.embedding_dim
        x, kept = part(of_token, 0, first), of_token[:, first:]
        context, reads = None, [x]
        if self.attends_first:
            context = self._attended(before[-1 - self.vectors], memory, attended)
            reads.append(context)
        elif self.input_feeding:
            reads.append(before[-1])
        given, after = _joined(reads), []
        for number, cell in enumerate(self.cells):
            if number and kept.shape[1]:
                given = given * kept[:, (number - 1) * width : number * width]
            own = before[number * self.vectors : (number + 1) * self.vectors]
            given, new = cell(given, own)
            after += new
        output = self._output(given, x, context, memory, attended)
        return [*after, output + after[0] if self.residual else output]

    def read_alone(self, x: Any, mask: Any = None) -> Any:
        """The first cell's states where it reads a target without any text, (B, N, D) float32.

        It begins with zeros, and has zeros in the place of what it reads beside x (B, N, E).
        """
        more = ops.zeros((*ops.shape(x)[:2], self._read_dim - self.embedding_dim), "float32")
        nothing = ops.zeros((ops.shape(x)[0], self.hidden_dim), "float32")

        def step(states: list[Any], of_token: Any) -> list[Any]:
            return list(self.cells[0](of_token, states)[1])

        x = ops.concatenate([x, more], axis=-1)
        return read_along(step, [nothing] * self.vectors, x, mask)[0][0]

    def _attended(self, state: Any, memory: Memory, attended: Any) -> Any:
        assert self.attention is not None
        return self.attention(state, memory.keys, memory.values, mask=attended)

    def _output(self, state: Any, x: Any, context: Any, memory: Memory, attended: Any) -> Any:
        """What predicts the next token, (B, D) float32."""
        if self.mix is None:
            return state
        if context is not None:
            mixed = ops.cast(self.mix(_joined([state, x, context])), "float32")
            return ops.max(ops.reshape(mixed, (-1, self.hidden_dim, 2)), axis=-1)
        context = self._attended(state, memory, attended)
        return ops.tanh(ops.cast(self.mix(_joined([context, state])), "float32"))


def _joined(vectors: Sequence[Any]) -> Any:
    return vectors[0] if len(vectors) == 1 else ops.concatenate(vectors, axis=-1)
