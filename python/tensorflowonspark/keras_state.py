# SPDX-License-Identifier: Apache-2.0
"""What the workers' models have in common: their structure, their variables, and the state of their metrics."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional

from .collectives import Group

__all__ = ["agree", "average_statistics", "send_state", "send_weights", "sum_metrics"]

_SPREAD = 2654435761  # between the seeds of two ranks


def agree(group: Group, model: Any, steps: Optional[int], batches: Optional[int]) -> Optional[int]:
    """Makes sure that the workers train the same model, in the same way.

    Returns:
        How many batches the worker with the most of them has in an epoch; None if that is not known.

    Raises:
        ValueError: on all workers, naming what differs first.
    """
    if not all(layer.built for layer in model._flatten_layers()):
        raise ValueError("distribute: the model's variables do not yet exist, so they cannot be made equal on all workers: give it a "
                         "keras.Input, or call it on a batch before fit")
    mine = {"weights": [_describe(variable) for variable in model.weights], "optimizer": _settings(model.optimizer),
            "optimizer variables": [_describe(variable) for variable in model.optimizer.variables], "steps": steps, "batches": batches,
            "execution": model.steps_per_execution}
    described = group.exchange(mine, "models")
    chief = described[group.root]
    for rank, other in enumerate(described):
        difference = _difference(chief, other)
        if difference is not None:
            here, there = difference
            raise ValueError(f"distribute: the workers do not train the same model: {here} on rank {group.root}, the chief, and {there} on "
                             f"rank {rank}: let all workers build and compile it by the same program")
    known = [one["batches"] for one in described]
    return None if None in known else max(known)


def _variables(model: Any) -> List[Any]:
    return [*model.weights, *model.optimizer.variables]


def _describe(variable: Any) -> List[Any]:
    return [getattr(variable, "path", variable.name), str(variable.dtype), list(variable.shape)]


def _settings(optimizer: Any) -> Dict[str, Any]:
    """The optimizer's configuration, but for what is a variable, and names."""
    settings = json.loads(json.dumps(optimizer.get_config(), default=str))
    for config in (settings, (settings.get("inner_optimizer") or {}).get("config") or {}):
        for name in ("name", "learning_rate"):
            config.pop(name, None)
    return {"class": type(optimizer).__name__, **settings}


def _difference(chief: Dict[str, Any], other: Dict[str, Any]) -> Any:
    """What the one and the other have where they differ first, as text; None: they do not."""
    difference = _difference_of(chief["weights"], other["weights"], "weight")
    if difference is not None:
        return difference
    for name in {**chief["optimizer"], **other["optimizer"]}:
        here, there = chief["optimizer"].get(name), other["optimizer"].get(name)
        if here != there:
            return f"the optimizer's {name} is {here}", f"{there}"
    for name, words in (("steps", "steps_per_epoch"), ("execution", "steps_per_execution")):
        if chief[name] != other[name]:
            return f"{words} is {chief[name]}", f"{other[name]}"
    return _difference_of(chief["optimizer variables"], other["optimizer variables"], "optimizer variable")


def _difference_of(chief: List[Any], other: List[Any], kind: str) -> Any:
    for index, (here, there) in enumerate(zip(chief, other)):
        if _plain(here) != _plain(there):
            return f"{kind} {index} is {_text_of(here)}", _text_of(there)
    if len(chief) != len(other):
        first = max(chief, other, key=len)[min(len(chief), len(other))]
        return f"there are {len(chief)} {kind}s", f"{len(other)} (the first that not all have is {_text_of(first)})"
    return None


def _plain(description: List[Any]) -> List[Any]:
    """Without the numbers that Keras appends to names, by how many layers a process has made before."""
    return [re.sub(r"_\d+(?=[/_]|$)", "", description[0]), *description[1:]]


def _text_of(description: List[Any]) -> str:
    path, dtype, shape = description
    return f"{path}, {dtype} {tuple(shape)}"


def send_state(tf: Any, group: Group, model: Any) -> None:
    """Gives all workers the chief's weights, state of the optimizer, epoch and seeds; random numbers then differ from worker to worker."""
    from keras.src.random.seed_generator import global_seed_generator

    kept = {id(variable) for variable in model.weights}
    seeds = [variable for variable in model.non_trainable_variables if id(variable) not in kept and variable.name == "seed_generator_state"]
    seeds.append(global_seed_generator().state)
    variables = [*_variables(model), *seeds]
    values = group.broadcast([tf.convert_to_tensor(variable.value) for variable in variables], "variables")
    epochs = group.exchange(model._initial_epoch, "first epoch")
    if group.rank == group.root:
        return
    model._initial_epoch = epochs[group.root]
    for variable, value in zip(variables, values):
        variable.assign(value)
    for variable in seeds:
        seed, counter = (int(number) for number in variable.numpy())
        variable.assign([(seed + group.rank * _SPREAD) % 2**31, counter])


def send_weights(tf: Any, group: Group, model: Any) -> None:
    """Gives all workers the chief's weights."""
    if group.size == 1:
        return
    values = group.broadcast([tf.convert_to_tensor(variable.value) for variable in model.weights], "weights")
    if group.rank != group.root:
        for variable, value in zip(model.weights, values):
            variable.assign(value)


def average_statistics(tf: Any, group: Group, model: Any) -> None:
    """Makes what layers keep of the batches they have seen, such as BatchNormalization, the mean over the workers."""
    variables = [variable for layer in model._flatten_layers() for variable in layer._non_trainable_variables
                 if tf.as_dtype(variable.dtype).is_floating]
    if not variables or group.size == 1:
        return
    # In float64 the mean of equal numbers is that number.
    means = group.all_reduce([tf.cast(variable.value, tf.float64) for variable in variables], "statistics of layers", "mean")
    for variable, mean in zip(variables, means):
        variable.assign(tf.cast(mean, variable.dtype))


def sum_metrics(tf: Any, group: Group, metrics: List[Any], mode: Optional[str]) -> None:
    """Gives the metrics the state that they would have in one process: sums and counts of all workers."""
    if group.size == 1:
        return
    variables = list({id(variable): variable for metric in metrics for variable in metric.variables}.values())
    operation = f"metrics of {'training' if mode == 'train' else 'evaluate'}"
    for aggregation in ("sum", "mean", "only_first_replica"):
        chosen = [variable for variable in variables if _aggregation(variable) == aggregation]
        values = [_summable(tf, variable.value) for variable in chosen]
        if not values:
            continue
        if aggregation == "only_first_replica":
            reduced = group.broadcast(values, operation)
        else:
            reduced = group.all_reduce(values, operation, aggregation)
        for variable, value in zip(chosen, reduced):
            variable.assign(tf.cast(value, variable.dtype))


def _aggregation(variable: Any) -> str:
    aggregation = getattr(variable, "aggregation", None)
    return aggregation if aggregation in ("mean", "only_first_replica") else "sum"


def _summable(tf: Any, value: Any) -> Any:
    value = tf.convert_to_tensor(value)
    return value if value.dtype in (tf.float32, tf.float64, tf.int32, tf.int64) else tf.cast(value, tf.float64)
