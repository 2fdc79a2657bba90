# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose ``apply`` averages gradients over the workers first."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from .collectives import Group
from .keras_class import disguise

__all__ = ["StepState", "attach_optimizer"]


class _Gradient(NamedTuple):
    """What one gradient of a step is, so that a worker without rows can give one of no weight."""

    kind: str  #: "none", "dense" or "sparse"
    shape: Tuple[Optional[int], ...] = ()
    dtype: Any = None
    index_dtype: Any = None


class StepState:
    """What a model, its layers and its optimizer share in a step."""

    def __init__(self, tf: Any, group: Group) -> None:
        self.tf = tf
        self.group = group
        self.weight: Any = None  #: what this rank's gradients count; None outside of train_step
        self.share: Any = None  #: of this rank's rows in the step, where the forward pass needs it
        self.is_training = False  #: in train_step, with rows
        self.replay: List[Callable[[], Any]] = []  #: what a rank without rows does instead of a step: the same operations, with nothing

    def record(self, nothing: Callable[[], Any]) -> None:
        """Notes an operation of a step, by what takes part in it with nothing."""
        if self.is_training:
            self.replay.append(nothing)

    def describe(self, gradient: Any) -> _Gradient:
        tf = self.tf
        if gradient is None:
            return _Gradient("none")
        if isinstance(gradient, tf.IndexedSlices):
            return _Gradient("sparse", tuple(gradient.values.shape[1:]), gradient.dtype, gradient.indices.dtype)
        return _Gradient("dense", (), gradient.dtype)

    def empty(self, gradient: _Gradient, variable: Any) -> Any:
        """A gradient of no weight."""
        tf = self.tf
        if gradient.kind == "none":
            return None
        if gradient.kind == "dense":
            return tf.zeros(variable.shape, gradient.dtype)
        shape = tf.constant(list(variable.shape), gradient.index_dtype)
        return tf.IndexedSlices(tf.zeros([0, *gradient.shape], gradient.dtype), tf.zeros([0], gradient.index_dtype), shape)


def attach_optimizer(optimizer: Any, state: StepState) -> None:
    """Changes the optimizer in place. Its class keeps name and module, so that what is saved is loaded without this package."""
    if not hasattr(optimizer, "_tfos_step"):
        optimizer.__class__ = _averaging(type(optimizer))
    object.__setattr__(optimizer, "_tfos_step", state)


@functools.lru_cache(maxsize=None)
def _averaging(base: type) -> type:
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        state, grads = self._tfos_step, list(grads)
        tf, group = state.tf, state.group
        variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        kinds = [state.describe(gradient) for gradient in grads]
        state.record(lambda: self.apply([state.empty(*pair) for pair in zip(kinds, variables)], variables))
        weight = 1 if state.weight is None else state.weight
        if self.gradient_accumulation_steps:
            share = group.share(weight)
            means = [_scaled(tf, gradient, share) for gradient in grads]
        else:
            means, share = group.mean(grads, weight)
        # Whatever comes next happens only if there was a step: where it ends the epoch, no variable may change.
        with tf.control_dependencies([share]):
            return base.apply(self, means, variables)  # type: ignore[attr-defined]

    def _clip_gradients(self: Any, grads: Any) -> Any:
        # Keras calls this once an update, with the mean over the accumulated steps.
        if self.gradient_accumulation_steps:
            grads = self._tfos_step.group.all_reduce(grads, "gradients")
        return base._clip_gradients(self, grads)  # type: ignore[attr-defined]

    return disguise(base, (base,), {"apply": apply, "_clip_gradients": _clip_gradients})


def _scaled(tf: Any, gradient: Any, share: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_scaled(tf, gradient.values, share), gradient.indices, gradient.dense_shape)
    return tf.math.multiply_no_nan(gradient, tf.cast(share, gradient.dtype))
