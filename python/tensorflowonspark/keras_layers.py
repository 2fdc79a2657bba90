# SPDX-License-Identifier: Apache-2.0
"""``BatchNormalization(synchronized=True)``: its mean and variance are those of all workers' rows."""

from __future__ import annotations

from typing import Any, Tuple

import keras

from .keras_optimizer import StepState

__all__ = ["attach_layers"]

_OPERATION = "batch normalization"


def attach_layers(model: Any, state: StepState) -> bool:
    """Lets such layers of the model look at all workers' rows; returns whether there are any."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization) and layer.synchronized]
    for layer in layers:
        object.__setattr__(layer, "_moments", _Moments(layer, state))
    return bool(layers)


class _Moments:
    """Takes the place of the layer's method of that name."""

    def __init__(self, layer: Any, state: StepState) -> None:
        self._layer, self._state = layer, state

    def __call__(self, inputs: Any, mask: Any) -> Tuple[Any, Any]:
        tf, layer = self._state.tf, self._layer
        axes = layer._reduction_axes
        counted = tf.ones_like(inputs) if mask is None else tf.broadcast_to(
            tf.cast(tf.expand_dims(mask, -1), inputs.dtype), tf.shape(inputs))
        count = tf.reduce_sum(counted, axes, keepdims=True)
        mean = tf.math.divide_no_nan(tf.reduce_sum(inputs * counted, axes, keepdims=True), count)
        squares = tf.reduce_sum(tf.square(inputs - mean) * counted, axes)
        return self._join(tf.stack([tf.reshape(count, [-1]), tf.reshape(mean, [-1]), squares]))

    def _join(self, own: Any) -> Tuple[Any, Any]:
        """Mean and variance of all rows, from each rank's count, mean and squared differences from that."""
        tf = self._state.tf
        count, means, squares = tf.unstack(self._gather(own), axis=1)
        total = tf.reduce_sum(count, 0)
        mean = tf.math.divide_no_nan(tf.reduce_sum(count * means, 0), total)
        return mean, tf.math.divide_no_nan(tf.reduce_sum(squares + count * tf.square(means - mean), 0), total)

    def _gather(self, own: Any) -> Any:
        state, tf = self._state, self._state.tf
        group, shape = state.group, own.shape
        share = tf.cast(1 / group.size if state.share is None else state.share, own.dtype)
        state.record(lambda: self._follow(tf.zeros(shape, own.dtype)))

        @tf.custom_gradient
        def gather(own: Any) -> Any:
            gathered = group.gather([tf.expand_dims(own, 0)], _OPERATION)[0]
            gathered.set_shape([group.size, *shape])

            def gradient(upstream: Any) -> Any:
                # Each rank's loss depends on what each has given, and counts by its share.
                state.record(lambda: group.all_reduce([tf.zeros([group.size, *shape], own.dtype)], _OPERATION))
                total = group.all_reduce([upstream * share], _OPERATION)[0]
                return tf.math.divide_no_nan(total[group.rank], share)

            return gathered, gradient

        return gather(own)

    def _follow(self, nothing: Any) -> None:
        """What a rank without rows does: its moving averages become those of the others."""
        layer, tf = self._layer, self._state.tf
        for average, value in zip((layer.moving_mean, layer.moving_variance), self._join(nothing)):
            average.assign(average.value * layer.momentum + tf.cast(value, average.dtype) * (1 - layer.momentum))
