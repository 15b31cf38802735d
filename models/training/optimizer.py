"""The optimizers and the learning-rate schedule, built from a recipe's settings.

Weight decay is decoupled from the gradient and does not apply to LayerNorms and biases. With
``layer_decay``, the learning rate decreases with the distance from the output: fine-tuning then
changes the lower, more general layers least. These are ULMFiT's discriminative rates.

Added to Keras's optimizers: linear decay after warm-up, a learning rate per variable, the gradient
norm, and AdamW's choice of bias correction. Moments, gradient accumulation and the rest are
Keras's.

Reference:
    Kingma and Ba 2015, arXiv 1412.6980; Loshchilov and Hutter 2019, arXiv 1711.05101; layer-wise
    rates: Howard and Ruder 2018, arXiv 1801.06146, 3.2, as used by Clark et al. 2020,
    arXiv 2003.10555; slanted triangular rates: Howard and Ruder 2018, equation 3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import keras

from fourstage.errors import RecipeError
from models.keras_ops import ops

_UNDECAYED = ("bias", "gamma", "beta", "scale")
_BLOCK = re.compile(r"(?:^|/)block_(\d+)(?:_\w+)?(?:/|$)")  # context2vec: ``block_0_forward``
_CROSS = re.compile(r"(?:^|/)cross_(\d+)/")  # stands before the last blocks, one before each
# What enters the first block, and what all blocks share from the first one on: T5's and
# Transformer-XL's biases by distance.
_LOWEST = re.compile(
    r"embedding|(?:^|/)(?:(?:decoder_)?relative_bias|biases|region(?:_text)?_norm)/"
)


class WarmupThenDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak, then decay.

    No update has a rate of zero: the first one has peak / warmup_steps, the last one, with linear
    decay, peak / (total_steps - warmup_steps). Slanted triangular rates rise from peak / ratio and
    fall back to it; warmup_steps is the paper's *cut*.

    Args:
        peak_learning_rate: Rate at the end of the warm-up.
        total_steps: Number of updates.
        warmup_steps: Updates until the peak; 0 starts at the peak.
        decay: ``linear``, ``cosine``, ``constant``, ``slanted_triangular``, or
            ``inverse_square_root``: peak · √(warmup / step).
        ratio: Of ``slanted_triangular``: the peak divided by the lowest rate.
    """

    def __init__(
        self,
        peak_learning_rate: float,
        total_steps: int,
        warmup_steps: int,
        decay: str = "linear",
        ratio: float = 32.0,
    ):
        self.peak_learning_rate = peak_learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decay = decay
        self.ratio = ratio

    def __call__(self, step: Any) -> Any:
        """The rate of update `step`, counted from 0."""
        step = ops.cast(step, "float32")
        warmup = float(self.warmup_steps)
        rising = (step + 1.0) / max(warmup, 1.0)
        left = max(self.total_steps - self.warmup_steps, 1)
        progress = ops.clip((step - warmup) / left, 0.0, 1.0)
        if self.decay == "slanted_triangular":
            share = ops.where(step < warmup, step / max(warmup, 1.0), 1.0 - progress)
            return self.peak_learning_rate * (1.0 + share * (self.ratio - 1.0)) / self.ratio
        if self.decay == "linear":
            falling = 1.0 - progress
        elif self.decay == "cosine":
            falling = 0.5 * (1.0 + ops.cos(math.pi * progress))
        elif self.decay == "inverse_square_root":
            start = max(warmup, 1.0)
            falling = ops.sqrt(start / ops.maximum(step + 1.0, start))
        else:
            falling = ops.ones_like(step)
        return self.peak_learning_rate * ops.where(step < warmup, rising, falling)


class _Layerwise(keras.optimizers.Optimizer):
    """What the optimizers have in common: a rate per layer, variables that rest, the gradient norm.

    ``gradient_norm`` is the global norm of the last update's gradient before clipping, float32.

    Args:
        layer_decay: Factor on the rate per layer of distance from the output, (0, 1].
        clip_norm: Largest global norm of the gradient; 0 does not clip.
        kwargs: Arguments of the optimizer of Keras that comes next.
    """

    def __init__(self, *args: Any, layer_decay: float = 1.0, clip_norm: float = 0.0, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.layer_decay = layer_decay
        self.clip_norm = clip_norm
        self.gradient_norm = self.add_variable((), name="gradient_norm", dtype="float32")
        self.remedy: Any = None  # a `models.training.remedies.Remedy`
        self._resting: frozenset[int] = frozenset()
        self._first: dict[int, int] = {}
        self._counts: dict[int, Any] = {}

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Each variable's share of the rate, from its path."""
        depths = layer_depths([variable.path for variable in self._trainable_variables])
        return tuple(self.layer_decay ** (max(depths) - depth) for depth in depths)

    def _get_current_learning_rate(self) -> Any:
        """The rate of this update; Keras would count micro-batches instead of updates."""
        schedule: Any = self._learning_rate
        return schedule(self.iterations)

    def rest(self, variables: Sequence[Any]) -> None:
        """Freeze exactly these variables and their moments from the next update on.

        A head that does not score in a turn has no gradient. A gradient of 0 would still apply
        weight decay and momentum. A compiled step keeps the variables frozen that were frozen when
        it was compiled.
        """
        self._resting = frozenset(self._get_variable_index(variable) for variable in variables)

    def begin_at(self, starts: Iterable[tuple[Any, int]]) -> None:
        """Set the first update, counted from 0, of variables that rest until then.

        The bias of their moments, which are zero until then, is corrected from there on.
        """
        self._first = {self._get_variable_index(variable): step for variable, step in starts}

    def count(self, variables: Iterable[Any]) -> None:
        """Count the updates of variables that rest now and then, each by itself.

        The bias of their moments, which stay as they are meanwhile, is corrected by that number. A
        checkpoint holds it, as one of the optimizer's variables. To be called after `build`.
        """
        for variable in variables:
            count = self.add_variable((), dtype="int", name="updates")
            self._counts[self._get_variable_index(variable)] = count

    def _updates(self, index: int) -> Any:
        """Number of a variable's updates so far, those in which it rested not among them."""
        if index in self._counts:
            return ops.convert_to_tensor(self._counts[index])
        first = self._first.get(index, 0)
        return ops.subtract(self.iterations, first) if first else self.iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> Any:
        """As in Keras, without frozen variables, and with the pull of a remedy."""
        if self._resting:
            variables = trainable_variables or self._trainable_variables
            moved = [
                (grad, variable)
                for grad, variable in zip(grads, variables, strict=True)
                if self._get_variable_index(variable) not in self._resting
            ]
            grads, trainable_variables = zip(*moved, strict=True)
        if keras.backend.backend() == "tensorflow":
            grads = [None if grad is None else self._of_tensorflow(grad) for grad in grads]
        if self.remedy is not None:
            variables = trainable_variables or self._trainable_variables
            grads = [
                None if grad is None else self.remedy.gradient(grad, variable)
                for grad, variable in zip(grads, variables, strict=True)
            ]
        return super().apply(grads, trainable_variables)

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        """As in Keras; a remedy may then change what the update made of each variable."""
        annealed = trainable_variables if getattr(self.remedy, "anneals", False) else ()
        before = [ops.copy(variable) for variable in annealed]
        super()._backend_update_step(grads, trainable_variables, learning_rate)
        for index in map(self._get_variable_index, trainable_variables):
            if index in self._counts:
                self._counts[index].assign_add(1)
        for old, variable in zip(before, annealed, strict=True):
            rate = learning_rate * self.rates[self._get_variable_index(variable)]
            self.remedy.step(old, variable, rate, self.iterations)

    def _of_tensorflow(self, gradient: Any) -> Any:
        """A gradient as the update wants it: dense, also that of an embedding."""
        import tensorflow as tf

        return tf.convert_to_tensor(gradient)

    def _clip_gradients(self, grads: Sequence[Any]) -> Any:
        """Record the global norm, then scale all gradients if it exceeds `clip_norm`."""
        squares = [
            ops.sum(ops.square(ops.cast(getattr(grad, "values", grad), "float32")))
            for grad in grads
        ]
        norm = ops.sqrt(sum(squares[1:], squares[0]))
        self.gradient_norm.assign(norm)
        if not self.clip_norm:
            return grads
        scale = self.clip_norm / ops.maximum(norm, self.clip_norm)
        return [ops.multiply(grad, ops.cast(scale, grad.dtype)) for grad in grads]

    def learning_rate_of(self, step: int) -> float:
        """The rate of update `step`, counted from 0."""
        schedule: Any = self._learning_rate
        return float(ops.convert_to_numpy(schedule(step)))


class LayerwiseSGD(_Layerwise, keras.optimizers.SGD):
    """Gradient descent without momentum, with a learning rate per variable.

    On TensorFlow only the rows of an embedding that a batch has read are moved, so that an update
    of a large table costs no more than that of a small one.
    """

    def _of_tensorflow(self, gradient: Any) -> Any:
        """Gradients of the same row of an embedding added up; the norm is then that of all rows."""
        import tensorflow as tf

        if not isinstance(gradient, tf.IndexedSlices) or self.gradient_accumulation_steps:
            return tf.convert_to_tensor(gradient)
        rows, place = tf.unique(gradient.indices)
        values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
        return tf.IndexedSlices(values, rows, gradient.dense_shape)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable."""
        share = self.rates[self._get_variable_index(variable)]
        rate = ops.cast(learning_rate, variable.dtype) * share
        self.assign_sub(variable, ops.multiply(gradient, rate))


class LayerwiseAdamW(_Layerwise, keras.optimizers.AdamW):
    """AdamW with a learning rate and weight decay per variable.

    On TensorFlow, one fused kernel updates a variable instead of Keras's eight.

    The moments start at zero and are therefore biased towards zero at first. There are three kinds
    of bias correction; they differ where gradients are not much larger than epsilon:

    - ``moments``: rate · m̂ / (√v̂ + ε), as in Adam's paper (algorithm 1) and torch;
    - ``rate``: rate · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε), as in TensorFlow, Keras and fairseq
      (the paper's section 2, where ε is called ε̂);
    - ``none``: rate · m / (√v + ε), as in Google's code of BERT, ALBERT and ELECTRA.

    Args:
        bias_correction: ``moments``, ``rate`` or ``none``.
        kwargs: Arguments of `_Layerwise` and of ``keras.optimizers.AdamW``.
    """

    def __init__(self, *args: Any, bias_correction: str = "moments", **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.bias_correction = bias_correction
        self._common: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def _apply_weight_decay(self, variables: Sequence[Any]) -> None:
        """Nothing: `update_step` applies weight decay with the variable's own rate."""

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        """As in Keras; what variables have in common is computed once for all of them."""
        self._common = {}
        super()._backend_update_step(grads, trainable_variables, learning_rate)
        self._common = {}  # they are tensors of this graph, and hold on to it

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable: weight decay, then Adam's step."""
        index = self._get_variable_index(variable)
        counted = index if index in self._counts else None
        key = (variable.dtype, self.rates[index], self._first.get(index, 0), counted)
        if key not in self._common:
            self._common[key] = self._factors(learning_rate, *key[:2], self._updates(index))
        rate, kept, powers, epsilon = self._common[key]
        if self.weight_decay and is_decayed(self._trainable_variables[index]):
            self.assign(variable, variable * kept)
        if keras.backend.backend() == "tensorflow":
            self._fused(gradient, variable, rate, index, powers, epsilon)
            return
        m, v = self._momentums[index], self._velocities[index]
        gradient = ops.cast(gradient, variable.dtype)
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        rate = rate * ops.sqrt(1.0 - powers[1]) / (1.0 - powers[0])
        self.assign_sub(variable, rate * m / (ops.sqrt(v) + epsilon))

    def _factors(
        self, learning_rate: Any, dtype: Any, share: float, updates: Any
    ) -> tuple[Any, ...]:
        """The rate, what decay keeps of a weight, the powers of β₁ and β₂, and ε."""
        rate = ops.cast(learning_rate, dtype) * share
        kept = 1.0 - rate * self.weight_decay if self.weight_decay else 1.0
        powers = [self._power(beta, dtype, updates) for beta in (self.beta_1, self.beta_2)]
        epsilon = self.epsilon
        if self.bias_correction == "moments":
            # rate · m̂ / (√v̂ + ε) equals the corrected rate times m / (√v + ε √(1 - β₂ᵗ)).
            epsilon = epsilon * ops.sqrt(1.0 - powers[1])
        if self.bias_correction == "none":
            powers = [ops.zeros_like(power) for power in powers]
        return rate, kept, powers, epsilon

    def _power(self, beta: float, dtype: Any, updates: Any) -> Any:
        """βᵗ, with t the number of this update of the variable, counted from 1."""
        number = ops.add(updates, 1)
        return ops.power(ops.cast(beta, dtype), ops.cast(number, dtype))

    def _fused(
        self,
        gradient: Any,
        variable: Any,
        rate: Any,
        index: int,
        powers: Sequence[Any],
        epsilon: Any,
    ) -> None:
        import tensorflow as tf

        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


class _OfKeras(_Layerwise):
    """Keras's own update, at the variable's rate; decay is that of AdamW."""

    _own: Any = None  # updates so far of the variable that is being updated

    @property
    def iterations(self) -> Any:
        """Number of updates so far, those in which the variable rested not among them."""
        return super().iterations if self._own is None else self._own

    def _apply_weight_decay(self, variables: Sequence[Any]) -> None:
        """Nothing: `update_step` applies weight decay, as a part of what a remedy anneals."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable: weight decay, then Keras's step."""
        index = self._get_variable_index(variable)
        rate = ops.cast(learning_rate, variable.dtype) * self.rates[index]
        if self.weight_decay and is_decayed(self._trainable_variables[index]):
            self.assign(variable, variable * (1.0 - rate * self.weight_decay))
        self._own = self._updates(index)
        super().update_step(gradient, variable, rate)
        self._own = None


class LayerwiseAdafactor(_OfKeras, keras.optimizers.Adafactor):
    """Adafactor: second moments by row and column, steps in proportion to a variable's size.

    A step is the rate, at most 1/√t, times the variable's root mean square, at least 1e-3. Without
    first moments, as T5 is trained. Shazeer and Stern 2018, arXiv 1804.04235.
    """


class LayerwiseAdagrad(_OfKeras, keras.optimizers.Adagrad):
    """AdaGrad: rate · g / √(.1 + Σ g² + ε). Duchi et al. 2011, JMLR 12."""


class LayerwiseLamb(_OfKeras, keras.optimizers.Lamb):
    """LAMB: Adam's step, of a matrix made as long as the matrix, times the rate.

    What is not decayed, biases and LayerNorms, takes Adam's step as it is, as in Google's code of
    ALBERT and in NVIDIA's apex, and so does a matrix of zeros. Keras makes a bias's step as long as
    the bias, which therefore hardly leaves zero. Here as in Keras weight decay stands beside that
    step; in You et al. 2020, arXiv 1904.00962, it is part of what is made as long.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable."""
        if is_decayed(self._trainable_variables[self._get_variable_index(variable)]):
            super().update_step(gradient, variable, learning_rate)
            return
        before = ops.copy(variable)
        self.assign(variable, ops.zeros_like(before))  # of zeros, Keras takes the step as it is
        super().update_step(gradient, variable, learning_rate)
        self.assign_add(variable, before)


class LayerwiseMuon(_OfKeras, keras.optimizers.Muon):
    """Muon for the matrices of the blocks, Adam for all other weights.

    The momentum of a matrix is replaced by the nearest matrix whose singular values are about 1,
    found by five Newton-Schulz iterations, so that an update moves all directions alike. It is
    then scaled to a root mean square of about .2, that of Adam's updates, so that both take the
    same rate and decay. Embeddings, biases, LayerNorms, pooler, heads, and weights of more than
    two axes are Adam's.

    Args:
        momentum: Share of the momentum that an update keeps, [0, 1).
        beta_1: Of Adam.
        beta_2: Of Adam.
        kwargs: Arguments of `_Layerwise` and of ``keras.optimizers.Muon``.

    Raises:
        RecipeError: At `build`: no variable is a matrix of a block.

    Differs from the paper:
        Queries, keys and values in a (D, H, K) kernel, as Transformer-XL and XLNet have them, are
        Adam's, not reshaped.

    Reference:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks",
        https://kellerjordan.github.io/posts/muon; the scale: Liu et al. 2025, arXiv 2502.16982,
        2.2.
    """

    def __init__(self, *args: Any, beta_1: float = 0.9, beta_2: float = 0.999, **kwargs: Any):
        super().__init__(*args, **{"adam_beta_1": beta_1, "adam_beta_2": beta_2, **kwargs})

    def build(self, var_list: Sequence[Any]) -> None:
        """As in Keras, if there is a matrix for Muon."""
        if all(map(self._should_use_adamw, var_list)):
            raise RecipeError(
                "optimizer.muon: expected weights to train that are matrices of a block; there are"
                " none, so that every weight would be Adam's; use adamw"
            )
        super().build(var_list)

    def _should_use_adamw(self, variable: Any) -> bool:
        return not (
            len(variable.shape) == 2
            and _BLOCK.search(variable.path)
            and "embedding" not in variable.path
            and is_decayed(variable)
        )


OPTIMIZERS = {
    "adafactor": LayerwiseAdafactor,
    "adagrad": LayerwiseAdagrad,
    "adamw": LayerwiseAdamW,
    "lamb": LayerwiseLamb,
    "muon": LayerwiseMuon,
    "sgd": LayerwiseSGD,
}
# Settings of some of them.
_OWN = ("weight_decay", "momentum", "beta_1", "beta_2", "epsilon", "bias_correction")


def is_decayed(variable: Any) -> bool:
    """Whether weight decay applies: to matrices and embeddings, not to LayerNorms and biases."""
    name = variable.path.rsplit("/", 1)[-1]
    # Attention by relative positions has biases by head, (H, K), such as ``content_bias``.
    return len(variable.shape) > 1 and not name.endswith(_UNDECAYED)


def layer_depths(paths: Sequence[str]) -> list[int]:
    """Each variable's layer, from its path: embeddings 0, ``block_i`` i + 1, the rest above.

    Example: ["bert/embedding/table", "bert/block_0/…", "bert/block_1/…", "bert/pooler/kernel"] →
    [0, 1, 2, 3].
    """
    last, across = (
        max((int(match[1]) + 1 for match in map(kind.search, paths) if match), default=0)
        for kind in (_BLOCK, _CROSS)
    )

    def depth(path: str) -> int:
        if match := _BLOCK.search(path):
            return int(match[1]) + 1
        if match := _CROSS.search(path):  # with the block that it stands before
            return last - across + int(match[1]) + 1
        return 0 if _LOWEST.search(path) else last + 1

    return [depth(path) for path in paths]


def make_optimizer(
    settings: Mapping[str, Any], *, total_steps: int, accumulation: int = 1, name: str = "adamw"
) -> Any:
    """The optimizer of a stage.

    Args:
        settings: All its settings in the recipe. A ``warmup`` below 1 is a share of the updates,
            else a number of updates.
        total_steps: Number of updates.
        accumulation: Micro-batches per update.
        name: One of `OPTIMIZERS`.
    """
    return OPTIMIZERS[name](
        learning_rate=schedule(settings, total_steps),
        clip_norm=settings["clip_norm"],
        layer_decay=settings["layer_decay"],
        gradient_accumulation_steps=accumulation if accumulation > 1 else None,
        name=name,
        **{key: settings[key] for key in _OWN if key in settings},
    )


def schedule(settings: Mapping[str, Any], total_steps: int) -> WarmupThenDecay:
    """The learning-rate schedule over `total_steps` updates."""
    warmup = settings["warmup"]
    steps = round(warmup * total_steps) if warmup < 1 else int(warmup)
    return WarmupThenDecay(
        settings["peak_learning_rate"],
        total_steps,
        min(steps, total_steps),
        settings["decay"],
        settings.get("ratio", 32.0),
    )
