# SPDX-License-Identifier: Apache-2.0
"""A Keras 3 model that trains in step with those of other workers; what ``keras.distribute`` makes of the user's."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from typing import Any, Callable, Iterator, List, Optional

import keras

from .collectives import STOPPED, Group
from .keras_calls import bind_fit, build
from .keras_class import disguise
from .keras_data import drain, follow, split_rows, static_rows, untuned, without_padding
from .keras_layers import attach_layers
from .keras_optimizer import StepState, attach_optimizer
from .keras_state import agree, average_statistics, send_state, sum_metrics

logger = logging.getLogger(__name__)

__all__ = ["attach"]


def attach(tf: Any, model: Any, group: Group) -> Any:
    """Changes the compiled model, and its optimizer, in place."""
    state = getattr(model, "_tfos", None)
    if state is None:
        object.__setattr__(model, "_tfos", _State(tf, group))
        object.__setattr__(model, "__class__", _in_step(type(model)))
    elif not isinstance(state, _State) or state.group is not group:
        raise ValueError("this model is already distributed, in another group or mode: build and compile it anew")
    model._attach()
    return model


@functools.lru_cache(maxsize=None)
def _in_step(base: type) -> type:
    return disguise(base, (_InStep, base), {})


class _State(StepState):
    """What a model knows of its training in step."""

    def __init__(self, tf: Any, group: Group) -> None:
        super().__init__(tf, group)
        self.mode: Optional[str] = None  #: "fit" until it has its data, then "train", or "validation"; "test" in evaluate, "batch" in train_on_batch
        self.limit: Optional[int] = None  #: steps of an epoch; None: until all data has ended
        self.steps_are_given = False  #: by steps_per_epoch
        self.steps = 0  #: of this epoch
        self.has_ended = False  #: all data of this epoch has
        self.is_synchronized = False  #: the chief's state has been received
        self.deal: Optional[Callable[[dict], None]] = None  #: gives the arguments of fit and evaluate this worker's part of the data; None: they are that
        self.has_synchronized = False  #: layers whose statistics are those of all ranks' rows

    @contextlib.contextmanager
    def within(self, mode: str) -> Iterator[None]:
        before, self.mode = self.mode, mode
        try:
            yield
        finally:
            self.mode = before


class _Last(keras.callbacks.Callback):
    """Comes after all other callbacks of ``fit``."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.model._synchronize()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model._tfos.steps, self.model._tfos.has_ended = 0, False

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # A callback may have decided by what only its worker knows.
        self.model.stop_training = any(self.model._tfos.group.exchange(bool(self.model.stop_training), "end of the epoch"))


class _InStep:
    """Mixed into the class of the user's model."""

    _tfos: _State

    # ---- what Keras calls for a step

    def train_step(self, data: Any) -> Any:
        state = self._tfos
        state.group.have_data(data)
        rows, may_be_empty, strip = self._rows_of(data)
        step = super().train_step  # type: ignore[misc]
        share = None
        if state.has_synchronized:
            share = state.group.share(rows)
            with state.tf.control_dependencies([share]):  # what comes next is not to overtake it
                rows, data = _map_tensors(state.tf, state.tf.identity, (rows, data))
            _, _, strip = self._rows_of(data)

        def busy() -> Any:
            state.weight, state.share, state.is_training, state.replay = rows, share, True, []
            try:
                return step(strip())
            finally:
                state.weight, state.share, state.is_training = None, None, False

        def idle() -> Any:
            state.weight, state.share = 0, share
            try:
                for take_part in state.replay:
                    take_part()
            finally:
                state.weight, state.share = None, None

        return self._where_rows(rows, may_be_empty, busy, idle)

    def test_step(self, data: Any) -> Any:
        rows, may_be_empty, strip = self._rows_of(data)
        step = super().test_step  # type: ignore[misc]
        return self._where_rows(rows, may_be_empty, lambda: step(strip()), lambda: None)

    def predict_step(self, data: Any) -> Any:
        return super().predict_step(self._rows_of(data)[2]())  # type: ignore[misc]

    def _rows_of(self, data: Any) -> Any:
        """How many rows a batch has, whether that may be none, and a function that gives the batch without its padding."""
        tf = self._tfos.tf
        try:
            x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        except ValueError:  # a train_step of the user's takes it
            x, y, weights = data, None, None
        rows, keep = split_rows(tf, x, weights)
        if keep is None:
            return rows, not static_rows(x), lambda: data
        return rows, True, lambda: keras.utils.pack_x_y_sample_weight(*without_padding(tf, (x, y, weights), rows, keep))

    def _where_rows(self, rows: Any, may_be_empty: bool, busy: Callable, idle: Callable) -> Any:
        """Runs ``busy`` if there are rows, else ``idle``, and gives the logs of the step."""
        tf = self._tfos.tf
        if not may_be_empty:
            return busy()
        if tf.executing_eagerly():
            if int(rows) > 0:
                return busy()
            if not self._tfos.replay:  # what a step does is not yet known
                tf.function(busy, autograph=False).get_concrete_function()
            idle()
            return self.get_metrics_result()  # type: ignore[attr-defined]
        specs = []

        def take_step() -> Any:
            logs = tf.nest.map_structure(tf.convert_to_tensor, busy())
            specs.append(logs)
            return logs

        def take_none() -> Any:
            idle()
            return tf.nest.map_structure(lambda tensor: tf.zeros([size or 0 for size in tensor.shape], tensor.dtype), specs[0])

        return tf.cond(rows > 0, take_step, take_none)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        loss = super().compute_loss(x, y, y_pred, sample_weight, **options)  # type: ignore[misc]
        factor = self._factor(y_pred, sample_weight)
        if factor is None:
            return loss
        extra = sum((self._aggregate_additional_loss(one) for one in self.losses), 0.0)  # type: ignore[attr-defined]
        return (loss - extra) * self._tfos.tf.cast(factor, loss.dtype) + extra

    def _factor(self, y_pred: Any, sample_weight: Any) -> Any:
        """By what to multiply the loss of this worker's rows, so that its mean by rows over the workers is that of all rows; None: 1."""
        state, tf = self._tfos, self._tfos.tf
        reductions = self._reductions()
        if "sum" in reductions:
            if len(set(reductions)) > 1:
                raise ValueError(f"distribute: losses of one model must all have the reduction 'sum', or none of them; these have {reductions}")
            # evaluate knows nothing of the other workers' batches, and takes them to be as large.
            return 1 / self._share_of_rows() if state.is_training else state.group.size
        counted = _counted_entries(tf, reductions[0], y_pred, sample_weight) if state.is_training and len(reductions) == 1 else None
        if counted is None:
            return None
        return self._share_of(tf.maximum(counted, 1e-30)) / self._share_of_rows()  # rows that count nothing are rows

    def _share_of_rows(self) -> Any:
        if self._tfos.share is None:
            self._tfos.share = self._share_of(self._tfos.weight)
        return self._tfos.share

    def _share_of(self, weight: Any) -> Any:
        group = self._tfos.group
        self._tfos.record(lambda: group.share(0))
        return group.share(weight)

    def _reductions(self) -> List[str]:
        """How each loss of ``compile`` makes one number of those of the rows."""
        losses = getattr(getattr(self, "_compile_loss", None), "_flat_losses", None) or []
        return [getattr(loss.loss, "reduction", "sum_over_batch_size") for loss in losses]

    # ---- what the user calls

    def compile(self, *args: Any, **kwargs: Any) -> None:
        super().compile(*args, **kwargs)  # type: ignore[misc]
        self._attach()

    def _attach(self) -> None:
        """Takes hold of what ``compile`` has made."""
        attach_optimizer(self.optimizer, self._tfos)  # type: ignore[attr-defined]
        self._tfos.has_synchronized = attach_layers(self, self._tfos)
        if self.jit_compile:  # type: ignore[has-type]
            if self._tfos.group.is_chief:  # Keras's default is on where there is a GPU
                logger.warning("distribute: XLA has no collective operations, so the model is trained without jit_compile")
            self.jit_compile = False
        self.train_function = self.test_function = self.predict_function = None
        self._tfos.replay, self._tfos.is_synchronized = [], False

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        state, group = self._tfos, self._tfos.group
        call = bind_fit(super().fit, state.tf, group, args, kwargs, last=[_Last()])  # type: ignore[misc]
        if state.deal is not None:
            state.deal(call.arguments)
        with state.within("fit"):
            return super().fit(*call.args, **call.kwargs)  # type: ignore[misc]

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        if self._tfos.deal is not None and not self._tfos.mode:
            call = inspect.signature(super().evaluate).bind(*args, **kwargs)  # type: ignore[misc]
            self._tfos.deal(call.arguments)
            args, kwargs = call.args, call.kwargs
        with self._tfos.within("validation" if self._tfos.mode else "test"):
            return super().evaluate(*args, **kwargs)  # type: ignore[misc]

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        with self._tfos.within("batch"):
            return super().train_on_batch(*args, **kwargs)  # type: ignore[misc]

    # ---- what Keras calls around steps

    def make_train_function(self, force: bool = False) -> Any:
        super().make_train_function(force)  # type: ignore[misc]
        if not hasattr(self.train_function, "is_counted"):  # type: ignore[has-type]
            self.train_function = self._counted(self.train_function)  # type: ignore[has-type]
        return self.train_function

    def _counted(self, function: Callable) -> Callable:
        state, errors = self._tfos, self._tfos.tf.errors

        @functools.wraps(function)
        def counted(iterator: Any) -> Any:
            try:
                with state.group.steps():
                    logs = function(iterator)
            except (StopIteration, errors.OutOfRangeError) as error:
                state.has_ended = True
                if state.mode == "train" and not state.steps_are_given and STOPPED not in str(error):
                    drain(state.tf, iterator)
                raise
            state.steps += self.steps_per_execution  # type: ignore[attr-defined]
            return logs

        counted.is_counted = True  # type: ignore[attr-defined]
        return counted

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Builds what the structure of the data lets be built; ``fit`` makes sure that it is the same on all workers."""
        state = self._tfos
        if iterator is not None:
            data_batch = iterator._distributed_dataset.element_spec
        build(self, data_batch)
        if state.mode == "fit":
            state.mode = "train"
            attach_optimizer(self.optimizer, state)  # type: ignore[attr-defined]  # it may have been replaced
            steps = iterator.steps_per_epoch
            limit = agree(state.group, self, steps, iterator.data_adapter.num_batches)
            follow(state.tf, iterator, limit)
            state.limit, state.steps_are_given = steps or limit, steps is not None
            return
        if iterator is not None:
            iterator._distributed_dataset = untuned(state.tf, iterator._distributed_dataset)
        if state.mode == "test" or state.mode == "batch" and not state.is_synchronized:
            agree(state.group, self, None, None)
            self._synchronize()

    def _synchronize(self) -> None:
        send_state(self._tfos.tf, self._tfos.group, self)
        self._tfos.is_synchronized = True

    def _get_metrics_result_or_logs(self, logs: Any) -> Any:
        """At the end of an epoch and of ``evaluate``: the metrics of all workers."""
        state, group = self._tfos, self._tfos.group
        if state.mode == "train":
            is_cut_short = not state.has_ended and (state.limit is None or state.steps < state.limit)
            if is_cut_short and self.stop_training:  # type: ignore[attr-defined]
                group.stop()
            average_statistics(state.tf, group, self)
        sum_metrics(state.tf, group, self.metrics, state.mode)  # type: ignore[attr-defined]
        return super()._get_metrics_result_or_logs(logs) if logs else self.get_metrics_result()  # type: ignore[misc, attr-defined]


def _map_tensors(tf: Any, function: Callable, structure: Any) -> Any:
    return tf.nest.map_structure(lambda leaf: None if leaf is None else function(leaf), structure)


def _counted_entries(tf: Any, reduction: str, y_pred: Any, sample_weight: Any) -> Any:
    """What Keras divides the sum over a batch by, where that is not the number of its entries."""
    mask = getattr(y_pred, "_keras_mask", None)
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        weights = tf.cast(tf.nest.flatten(sample_weight)[0], tf.float64)
        if mask is not None:
            spread = tf.reshape(weights, tf.concat([tf.shape(weights), tf.ones([tf.rank(mask) - tf.rank(weights)], tf.int32)], 0))
            weights = tf.cast(mask, tf.float64) * spread
        return tf.reduce_sum(weights)
    return None if mask is None else tf.reduce_sum(tf.cast(mask, tf.float64))
