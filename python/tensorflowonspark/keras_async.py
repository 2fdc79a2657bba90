# SPDX-License-Identifier: Apache-2.0
"""A Keras 3 model that workers train asynchronously; what ``keras.distribute(mode="async")`` makes of the user's."""

from __future__ import annotations

import functools
from typing import Any, List

import keras

from .collectives import Group
from .dataset import uneven_of
from .keras_calls import bind_fit, build
from .keras_class import disguise
from .keras_data import take_all, untuned
from .keras_state import agree, average_statistics, send_state, send_weights

__all__ = ["attach"]

_OPERATION = "weights"


def attach(tf: Any, model: Any, group: Group, staleness: int, every: int) -> Any:
    """Changes the compiled model in place."""
    state = getattr(model, "_tfos", None)
    if state is None:
        object.__setattr__(model, "_tfos", _State(tf, group, staleness, every))
        object.__setattr__(model, "__class__", _asynchronous(type(model)))
    elif not isinstance(state, _State) or state.group is not group:
        raise ValueError("this model is already distributed, in another group or mode: build and compile it anew")
    else:
        state.staleness, state.every = staleness, every
    return model


@functools.lru_cache(maxsize=None)
def _asynchronous(base: type) -> type:
    return disguise(base, (_Asynchronous, base), {})


class _State:
    """What a model knows of its asynchronous training."""

    def __init__(self, tf: Any, group: Group, staleness: int, every: int) -> None:
        self.tf, self.group, self.staleness, self.every = tf, group, staleness, every
        self.is_in_fit = False  #: and has not yet got its data
        self.variables: List[Any] = []  #: that are exchanged
        self.planned = 0  #: steps between a pull and its push; 0: nothing is exchanged
        self.steps = 0  #: since the pull
        self.has_pulled = False

    def open(self, model: Any) -> None:
        """Begins with the chief's weights."""
        if model.steps_per_execution > self.staleness:
            raise ValueError(f"distribute: steps_per_execution={model.steps_per_execution} must be at most staleness={self.staleness}: compile with fewer, or "
                             "distribute with a larger staleness")
        wrong = [variable for variable in model.trainable_weights if variable.dtype != "float32"]
        if wrong:
            raise ValueError(f"distribute: mode 'async' exchanges weights of float32, and {wrong[0].path} is of {wrong[0].dtype}: give its layer "
                             "dtype='float32' or 'mixed_float16', or use mode 'sync'")
        agree(self.group, model, None, None)
        send_state(self.tf, self.group, model)
        self.variables = [variable.value for variable in model.trainable_weights]
        self.steps, self.has_pulled, self.planned = 0, False, model.steps_per_execution
        while self.planned < self.every and self.planned + model.steps_per_execution <= self.staleness:
            self.planned += model.steps_per_execution
        if not self.variables or self.group.size == 1:
            self.planned = 0
        else:
            self.group.open_parameters(self.variables, self.staleness, _OPERATION)

    def begin_step(self) -> None:
        if self.planned and not self.has_pulled:
            self.group.pull_parameters(self.variables, self.planned, _OPERATION)
            self.has_pulled = True

    def end_steps(self, steps: int) -> None:
        self.steps += steps
        if self.steps >= self.planned:
            self.leave()

    def leave(self) -> None:
        """Pushes what there is: what comes next is no step."""
        if self.has_pulled:
            self.group.push_parameters(self.variables, self.steps, _OPERATION)
            self.has_pulled = False
        self.steps = 0

    def close(self, model: Any) -> None:
        """Waits for the others, and takes over what all have trained."""
        self.leave()
        if self.planned:
            self.group.close_parameters(self.variables, _OPERATION)
        average_statistics(self.tf, self.group, model)


class _Begin(keras.callbacks.Callback):
    """Comes after all other callbacks: one of them may have restored the chief's weights."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.model._tfos.open(self.model)


class _Exchange(keras.callbacks.Callback):
    """Comes before all other callbacks, for which no worker is to wait, and which see at the end what all have trained."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model._tfos.begin_step()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model._tfos.end_steps(self.model.steps_per_execution)

    def on_test_begin(self, logs: Any = None) -> None:
        self.model._tfos.leave()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model._tfos.leave()

    def on_train_end(self, logs: Any = None) -> None:
        self.model._tfos.close(self.model)


class _Asynchronous:
    """Mixed into the class of the user's model."""

    _tfos: _State

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        state = self._tfos
        call = bind_fit(super().fit, state.tf, state.group, args, kwargs, [_Exchange()], [_Begin()])  # type: ignore[misc]
        self._check(call.arguments.get("x"))
        state.is_in_fit = state.group.size > 1
        history = super().fit(*call.args, **call.kwargs)  # type: ignore[misc]
        send_weights(state.tf, state.group, self)  # a callback may have put back better ones
        return history

    def _check(self, x: Any) -> None:
        """Refuses what makes workers wait for each other."""
        uneven = uneven_of(x)
        if uneven:
            raise ValueError(f"distribute: in mode 'async' workers do not wait for each other, and uneven={uneven!r} of the dataset makes them: "
                             "leave uneven out, or use mode 'sync'")
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            if getattr(layer, "synchronized", False):
                raise ValueError(f"distribute: in mode 'async' workers do not wait for each other, and the layer {layer.name} is synchronized: make it "
                                 "with synchronized=False, or use mode 'sync'")

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("distribute: in mode 'async' a model is trained by fit, which knows its first and last step: call fit, or use mode 'sync'")

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Builds what the structure of the data lets be built, so that ``fit`` can begin with the chief's weights."""
        state = self._tfos
        if iterator is not None:
            data_batch = iterator._distributed_dataset.element_spec
            iterator._distributed_dataset = untuned(state.tf, iterator._distributed_dataset)
            if state.is_in_fit:
                iterator._distributed_dataset = state.group.watched(iterator._distributed_dataset, _OPERATION)
                take_all(iterator, iterator.data_adapter.num_batches)
                state.is_in_fit = False  # the next data is that of a validation
        build(self, data_batch)
