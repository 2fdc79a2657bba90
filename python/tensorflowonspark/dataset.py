# SPDX-License-Identifier: Apache-2.0
"""``ctx.get_dataset``: the feed as a ``tf.data.Dataset`` of batches, whose source is an op in C."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import operator
import os
import secrets
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _tfos
from .arguments import count, flag, is_flag, is_number, milliseconds, seconds

__all__ = ["get_dataset"]

Names = Union[str, Iterable[str]]
_UNEVEN = (None, "pad", "join", "stop")
_MAX_ROWS = 2**31 - 1
ALL = 2**63 - 1  #: elements of a dataset

# What was opened last on each queue, which ends any earlier. Iterators know it by its number only and do not keep it.
_in_use: Dict[str, Any] = {}
_QUEUES = {"train": "input", "validation": "validation"}


def get_dataset(ctx: Any, batch_size: int, uneven: Optional[str] = None, drop_remainder: bool = False,
                dtypes: Any = None, prefetch: int = 2, timeout: float = 600, columns: Optional[Sequence[str]] = None,
                shapes: Optional[Mapping[str, Sequence[int]]] = None, ragged: Optional[Names] = None,
                padded: Union[None, Names, Mapping[str, Any]] = None, sparse: Optional[Names] = None,
                null_value: Any = None, shuffle_buffer: int = 0, seed: Optional[int] = None, split: str = "train") -> Any:
    """A ``tf.data.Dataset`` whose elements are batches of the rows fed to this node.

    Each pass over it is one epoch of ``cluster.train``; after the last it is empty. Waits until the structure of the rows is known: of a
    DataFrame by its schema, before the first row, if ``shapes``, ``ragged`` or ``padded`` says of each array what it is to be; else by the
    first rows, and where this node gets none in its first epoch, dense with an open dimension (docs/types.md). The structure says what the
    elements are: a tuple of tensors for rows that are tuples or lists, a dictionary for DataFrame rows, dictionaries and Rows
    (structs are dictionaries in it), one tensor for single values; the first dimension is the batch. Batches are made without
    Python, so other Python code does not delay them. A queue is read either by one dataset or by a ``DataFeed``.

    What tf.data has read ahead when a pass ends early (``take``, ``steps_per_epoch``) is not seen again; the next pass continues behind
    it, with the rest of the epoch, or with the next epoch when nothing is left. Keras counts the steps of the first epoch and takes as many of each:
    where a later epoch of one ``train`` has more, the rest and the next epoch are one pass. An iterator that is deleted while it waits for
    rows is freed when the next batch comes, or the epoch, the feed or the cluster ends, or when another dataset of the split is made: TensorFlow
    cannot interrupt the op. Reading in a process that is forked from this one fails, and fails this one, too; an iterator that TensorFlow has begun before
    the fork is of no use in it, as none of TensorFlow's is. tf.data does not tune itself while it reads this dataset: ``AUTOTUNE`` in a later
    ``map`` means a thread a core.

    Args:
        ctx: the node's context.
        batch_size: rows of a batch on this node. Keras's ``fit`` under a multi-worker strategy cuts each batch of a plain dataset
            into as many parts as there are workers: give it ``ctx.num_workers`` times the rows of a step.
        uneven: how nodes that train in step stay so, though their numbers of rows differ: Spark's rows are distributed evenly, to a batch.
            None: each node on its own, with the rows of its executor's tasks. "pad": all nodes
            agree ahead of each batch whether any has rows left; a node that has none, or too few, pads with zero rows. Elements
            then end with a float32 vector of sample weights, 1 for rows and 0 for padding, as Keras takes it (metrics use it as
            ``weighted_metrics``), every batch has ``batch_size`` rows, and no epoch of one ``train`` has fewer steps than its first, which is
            what Keras expects of all. "join": as "pad", but batches have only the rows that are
            there, at last none. "stop": the epoch ends for all when one node has no whole batch left; the rest of the rows is dropped.
        drop_remainder: with ``uneven=None``, leave out an epoch's last batch when it has too few rows.
        dtypes: a dtype for all tensors, or a tuple or dictionary of them in the elements' structure (a dictionary may name some only);
            None: as fed (float64 for Python floats, int64 for ints).
        prefetch: batches to keep ready; -1 (``tf.data.AUTOTUNE``) leaves the number to TensorFlow. 0 saves handing each batch from one
            thread to another, some tens of microseconds, which counts where a step is that short.
        timeout: seconds to wait for the other nodes in each agreement.
        columns: names of the columns of the batches, in this order; None: all. "person" is all of a struct, "person.age" a field of it.
        shapes: the shape of one row of a column, such as ``{"pixels": (28, 28)}``, which also takes lists of 784 numbers. With the shapes of
            all arrays nothing waits for a row.
        ragged: columns of lists to give as ``tf.RaggedTensor``. Without it, lists are dense where those of the first batch have one
            length, and ragged else.
        padded: columns of lists to fill up with zeros (or ``null_value``): to the batch's longest list, or, as ``{"words": 20}``, to
            a length.
        sparse: columns of MLlib vectors to give as ``tf.SparseTensor``; without it they are dense.
        null_value: what takes the place of a null: a value for all columns, or ``{"age": -1}``. Without it a null is refused.
        shuffle_buffer: rows of this node to draw from at random; 0: rows stay in the order of coming.
        seed: of the draws; None: another each time.
        split: "train", or "validation" for the rows of ``cluster.train(validation=...)``: each pass is the validation after one epoch of
            training. These come only then, so the training split must be asked for first: its structure is taken over, with what was asked of
            its columns. An evaluator has no training split and waits for the first row.

    Raises:
        ValueError: an argument is wrong, or the rows do not fit it, or the DataFrame's schema. From the iterator, ``tf.errors.InvalidArgumentError`` names
            partition, row and column of a value that does not fit, and ``AbortedError`` says that the cluster has ended.
    """
    options = options_of(batch_size, uneven, drop_remainder, timeout, columns, null_value, shuffle_buffer, seed)
    options["columns"] = column_options_of(shapes, ragged, padded, sparse, null_value)
    if split not in _QUEUES:
        raise ValueError(f"split must be 'train' or 'validation', not {split!r}")
    queue = options["queue"] = _QUEUES[split]
    options["like"] = _training(ctx) if split == "validation" else None
    prefetch = prefetch_of(prefetch)

    import tensorflow as tf

    check_dtypes(tf, dtypes)
    source = Source(tf, _tfos.Dataset(ctx.mgr.link, **options), uneven)
    _in_use[queue] = source
    dataset = source.batches(dtypes)
    if prefetch:
        dataset = dataset.prefetch(prefetch)
    return settle(tf, dataset, uneven, is_sharded=True)


def settle(tf: Any, dataset: Any, uneven: Optional[str], is_sharded: bool) -> Any:
    """The dataset with the options that ours need. ``is_sharded``: no strategy may leave out what is for other workers."""
    settings = tf.data.Options()
    if is_sharded:
        settings.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # A batch follows the one before.
    settings.experimental_optimization.map_parallelization = False
    # Its thread sleeps for up to a minute between two looks, and an iterator's end waits for it, holding the GIL: seconds each epoch.
    settings.autotune.enabled = False
    settled = dataset.with_options(settings)
    settled._tfos_uneven = uneven
    return settled


def uneven_of(dataset: Any) -> Optional[str]:
    """How the workers stay in step that read the dataset, or what it is made of; None: they do not."""
    inputs = getattr(dataset, "_inputs", list)()
    return getattr(dataset, "_tfos_uneven", None) or next(filter(None, map(uneven_of, inputs)), None)


def _training(ctx: Any) -> Optional[_tfos.Dataset]:
    """The dataset of the training split, whose structure validation rows have; None on an evaluator."""
    source = _in_use.get(_QUEUES["train"])
    if source is not None:
        return source.dataset
    if ctx.job_name == "evaluator":
        return None
    raise ValueError("get_dataset(split='validation') needs the dataset of the training split, which is to be asked for first: no row of "
                     "the validation comes before an epoch of training is read")


# ---- arguments


def options_of(batch_size: int, uneven: Optional[str], drop_remainder: bool, timeout: float, columns: Any, null_value: Any,
             shuffle_buffer: int, seed: Optional[int]) -> Dict[str, Any]:
    """The options of the library's dataset, but for single columns."""
    if uneven not in _UNEVEN:
        raise ValueError(f"uneven must be None, 'pad', 'join' or 'stop', not {uneven!r}")
    if columns is not None:
        columns = _names("columns", columns)
        if not columns:
            raise ValueError("columns must name a column at least; None gives all")
    return {
        "batch_size": count("batch_size", batch_size, 1, _MAX_ROWS, "an integer of 1 or more"),
        "drop_remainder": flag("drop_remainder", drop_remainder), "uneven": uneven or "ignore", "selection": columns,
        "null_value": None if null_value is None or isinstance(null_value, Mapping) else _null_text("null_value", null_value),
        "shuffle_rows": count("shuffle_buffer", shuffle_buffer, 0, _MAX_ROWS, "a number of rows, 0 or more"),
        "seed": secrets.randbits(63) if seed is None else count("seed", seed, -(2**63), 2**63 - 1, "None or an integer of 64 bits"),
        "agree_timeout_ms": milliseconds(seconds("timeout", timeout, most=1e9, words="a number of seconds, more than 0")),
    }  # fmt: skip


def prefetch_of(prefetch: Any) -> int:
    return count("prefetch", prefetch, -1, words="a number of batches, 0 or more, or -1 for tf.data.AUTOTUNE")


def column_options_of(shapes: Any, ragged: Any, padded: Any, sparse: Any, null_value: Any) -> List[Tuple[str, str, Any, Optional[str]]]:
    """The options of single columns: name, form, shape, text for nulls."""
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ValueError(f"shapes must be a dictionary such as {{'pixels': (28, 28)}}, not {shapes!r}")
    dense = {name: _shape(f"shapes[{name!r}]", shape) for name, shape in (shapes or {}).items()}
    forms: Dict[str, str] = {}
    for form, names in (("ragged", ragged), ("padded", padded), ("sparse", sparse)):
        for name in _names(form, () if names is None else names):
            if name in forms:
                raise ValueError(f"column {name!r} is asked for as {forms[name]} and as {form}; it can be one of them")
            if name in dense:
                raise ValueError(f"column {name!r} has a shape in shapes, so it cannot be {form}")
            forms[name] = form
    lengths = padded if isinstance(padded, Mapping) else {}
    padding = {name: _shape(f"padded[{name!r}]", length) for name, length in lengths.items() if length is not None}
    nulls = null_value if isinstance(null_value, Mapping) else {}
    texts = {name: _null_text(f"null_value[{name!r}]", value) for name, value in nulls.items()}
    names = list(dict.fromkeys([*_names("shapes", dense), *forms, *_names("null_value", texts)]))
    return [(name, "dense" if name in dense else forms.get(name, "auto"), dense.get(name, padding.get(name)), texts.get(name))
            for name in names]


def _names(argument: str, names: Any) -> List[str]:
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise ValueError(f"{argument} must be names of columns, not {names!r}")
    names = list(names)
    wrong = [name for name in names if not isinstance(name, str) or not name]
    if wrong:
        raise ValueError(f"{argument} must be names of columns; {wrong[0]!r} is none")
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{argument} names column {twice[0]!r} twice")
    return names


def _shape(argument: str, shape: Any) -> Tuple[int, ...]:
    one = functools.partial(count, argument, least=1, most=_MAX_ROWS, words="a shape such as (28, 28), integers of 1 or more")
    is_one = isinstance(shape, (str, bytes, Mapping)) or not isinstance(shape, Iterable) or getattr(shape, "shape", None) == ()
    sizes = tuple(map(one, (shape,) if is_one else shape))
    return sizes or (one(shape),)


def _null_text(argument: str, value: Any) -> str:
    """The value as the library reads it, by the type of the column."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            value = None
    if isinstance(value, str) and "\0" not in value:
        return value
    if is_flag(value):
        return str(bool(value))
    with contextlib.suppress(TypeError):
        return str(operator.index(value))
    if is_number(value):
        return repr(float(value))
    raise ValueError(f"{argument} must be a number, a bool, or text without null characters, not {value!r}")


def check_dtypes(tf: Any, dtypes: Any) -> None:
    if isinstance(dtypes, (Mapping, list, tuple)):
        for dtype in dtypes.values() if isinstance(dtypes, Mapping) else dtypes:
            check_dtypes(tf, dtype)
    elif dtypes is not None:
        _as_dtype(tf, dtypes)


def _as_dtype(tf: Any, dtype: Any) -> Any:
    try:
        return tf.as_dtype(dtype)
    except TypeError:
        raise ValueError(f"dtypes must be dtypes such as 'float32', or a tuple or dictionary of them; {dtype!r} is none") from None


# ---- tensors


class _Spec(NamedTuple):
    """One tensor of a batch, as the library describes it."""

    path: Tuple[str, ...]
    role: str
    dtype: str
    shape: Tuple[Optional[int], ...]


class _Column(NamedTuple):
    """Consecutive tensors that make one element."""

    path: Tuple[str, ...]
    specs: List[_Spec]

    @property
    def name(self) -> str:
        return ".".join(self.path)


class Source:
    """The library's dataset, and the graph functions that take its batches. It lives as long as they may be called."""

    def __init__(self, tf: Any, dataset: _tfos.Dataset, uneven: Optional[str]) -> None:
        self._tf = tf
        self._operations = load_operations(tf)
        self._graphs: List[Any] = []  # functions that datasets call
        self.dataset = dataset
        self._structure, specs = self._known(uneven)
        self._columns = _group([_Spec(*spec) for spec in specs])

    def _known(self, uneven: Optional[str]) -> Tuple[str, List[Any]]:
        known = self.dataset.specs(-1)
        if known is None:
            who = "no node was fed a row" if uneven else "the feed ended before the first row"
            raise ValueError(f"{who}, so the dataset's structure is unknown")
        return known

    def _output_types(self) -> List[Any]:
        """The dtypes of a batch's tensors, as the ops give them."""
        return [self._tf.as_dtype(spec.dtype) for column in self._columns for spec in column.specs]

    def batches(self, dtypes: Any) -> Any:
        """The tf.data.Dataset of batches."""
        tf = self._tf
        specs = [spec for column in self._columns for spec in column.specs]
        wanted = [dtype for column, dtype in zip(self._columns, self._spread(dtypes)) for dtype in self._dtypes_of(column, dtype)]

        def finish(tensors: List[Any]) -> List[Any]:
            for tensor, spec in zip(tensors, specs):
                tensor.set_shape(spec.shape)
            return [tensor if tensor.dtype == dtype else tf.cast(tensor, dtype) for tensor, dtype in zip(tensors, wanted)]

        flat = tuple(tf.TensorSpec(spec.shape, dtype) for spec, dtype in zip(specs, wanted))
        is_dense = all(len(column.specs) == 1 for column in self._columns)
        if not is_dense:
            return self._passes(finish, flat).map(tf.autograph.experimental.do_not_convert(self._compose))
        # tf.data wants the tensors in the order in which it flattens the structure.
        return self._passes(lambda tensors: tf.nest.flatten(self._compose(*finish(tensors))), self._compose(*flat))

    def _passes(self, finish: Callable, element_spec: Any) -> Any:
        """A dataset of which each pass takes the batches of the library's dataset; ``finish`` makes elements of their tensors."""
        tf = self._tf
        op = self._operations.tfos_next_batch

        def next_batch(index: Any, number: Any) -> List[Any]:
            return finish(op(dataset=number, index=index, output_types=self._output_types()))

        # (Dataset.counter() would run a function of a graph for each number.)
        counting = tf.data.Dataset.range(ALL)
        # Some operations ask again after the end, which would begin the next epoch; take() remembers that it has ended. (Of take(-1) and
        # prefetch(0) TensorFlow's optimiser makes nothing.)
        return self._map(counting, next_batch, [tf.constant(self.dataset.number, tf.int64)], element_spec).take(ALL)

    def _map(self, dataset: Any, function: Callable, arguments: List[Any], element_spec: Any) -> Any:
        """What ``function(*element, *arguments)`` makes of a dataset until it says OUT_OF_RANGE. ``Dataset.map`` would make a failure of that."""
        return self._over(self._tf.raw_ops.MapDataset, dataset, function, arguments, element_spec,
                          use_inter_op_parallelism=False, preserve_cardinality=False)

    def _over(self, make: Callable, dataset: Any, function: Callable, arguments: List[Any], element_spec: Any, state: Sequence[Any] = (),
              **options: Any) -> Any:
        """What the operation ``make`` makes of a dataset of tensors with ``function(*state, *element, *arguments)``."""
        tf = self._tf
        specs = tf.nest.flatten(element_spec)
        before = [tf.TensorSpec([None] * len(tensor.shape), tensor.dtype) for tensor in state]
        inputs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in [*tf.nest.flatten(dataset.element_spec), *arguments]]
        # Such a function is run as it is; others are optimised for each iterator anew, which takes milliseconds.
        attributes = {"experimental_ints_on_device": True}
        if state:
            options["initial_state"] = list(state)
        with tf.device("/cpu:0"):
            graph = tf.function(function, autograph=False, experimental_attributes=attributes).get_concrete_function(*before, *inputs)
            self._graphs.append(graph)
            variant = make(
                input_dataset=tf.data.experimental.to_variant(dataset), other_arguments=arguments, f=graph,
                output_types=[spec.dtype for spec in specs], output_shapes=[spec.shape for spec in specs], **options,
            )  # fmt: skip
            return tf.data.experimental.from_variant(variant, element_spec)

    def _compose(self, *tensors: Any) -> Any:
        """The tensors (or their specs) in the structure of a row."""
        left, tree, weights = list(tensors), {}, None  # type: ignore[var-annotated]
        for column in self._columns:
            parts, left = left[:len(column.specs)], left[len(column.specs):]
            if column.specs[0].role == "weights":
                weights = parts[0]
            else:
                _plant(tree, column.path, self._element(column, parts))
        if self._structure == "dict":
            element: Any = tree
        elif self._structure == "value":
            element = next(iter(tree.values()))
        else:
            element = tuple(tree.values())
        if weights is None:
            return element
        return (*element, weights) if isinstance(element, tuple) else (element, weights)

    def _element(self, column: _Column, parts: List[Any]) -> Any:
        tf = self._tf
        role = column.specs[0].role
        if role == "ragged_values":
            return tf.RaggedTensor.from_nested_row_splits(parts[0], parts[1:], validate=False)
        if role == "sparse_indices":
            return tf.SparseTensor(*parts)
        return parts[0]

    def _spread(self, dtypes: Any) -> List[Any]:
        """The dtype asked for each column, None for as it is."""
        columns = [column for column in self._columns if column.specs[0].role != "weights"]
        rest: List[Any] = [None] * (len(self._columns) - len(columns))
        if isinstance(dtypes, Mapping):
            return _spread_by_name(dtypes, [column.path for column in columns]) + rest
        if isinstance(dtypes, (list, tuple)):
            if self._structure == "dict":
                raise ValueError(f"dtypes is a {type(dtypes).__name__}, but the rows have names: give a dictionary, such as "
                                 f"{{{columns[0].name!r}: 'float32'}}")
            tops = list(dict.fromkeys(column.path[:1] for column in columns))
            if len(dtypes) != len(tops):
                raise ValueError(f"dtypes names {len(dtypes)} columns, the rows have {len(tops)}")
            named = {path[0]: dtype for path, dtype in zip(tops, dtypes)}
            return _spread_by_name(named, [column.path for column in columns]) + rest
        return [dtypes] * len(columns) + rest

    def _dtypes_of(self, column: _Column, wanted: Any) -> List[Any]:
        """The dtypes of a column's tensors: a cast is for its values."""
        tf = self._tf
        dtypes = [tf.as_dtype(spec.dtype) for spec in column.specs]
        if wanted is None:
            return dtypes
        dtype = _as_dtype(tf, wanted)
        for index, spec in enumerate(column.specs):
            if spec.role in ("dense", "ragged_values", "sparse_values"):
                if tf.string in (dtype, dtypes[index]) and dtype != dtypes[index]:
                    raise ValueError(f"dtypes asks for {dtype.name} of column {column.name}, which is {spec.dtype}: text is not cast")
                dtypes[index] = dtype
        return dtypes


def _group(specs: List[_Spec]) -> List[_Column]:
    """Columns of consecutive tensors with the same path."""
    columns: List[_Column] = []
    for spec in specs:
        if columns and columns[-1].path == spec.path and spec.role != "weights":
            columns[-1].specs.append(spec)
        else:
            columns.append(_Column(spec.path, [spec]))
    return columns


def _plant(tree: Dict[str, Any], path: Tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1] if path else ""] = value


def _spread_by_name(dtypes: Mapping[str, Any], paths: List[Tuple[str, ...]]) -> List[Any]:
    """For each path the dtype that is asked for it, or for the struct that it is in."""
    known = {".".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}
    asked: Dict[str, Any] = {}
    _collect(dtypes, "", asked)
    for name in asked:
        if name not in known:
            raise ValueError(f"dtypes names a column {name!r}; there are {', '.join('.'.join(path) for path in paths)}")
    spread = []
    for path in paths:
        names = [".".join(path[:depth]) for depth in range(len(path), 0, -1)]
        spread.append(next((asked[name] for name in names if name in asked), None))
    return spread


def _collect(dtypes: Mapping[str, Any], prefix: str, asked: Dict[str, Any]) -> None:
    for name, dtype in dtypes.items():
        if isinstance(dtype, Mapping):
            _collect(dtype, f"{prefix}{name}.", asked)
        else:
            asked[f"{prefix}{name}"] = dtype


def library_path() -> str:
    """What TensorFlow loads."""
    return os.path.join(os.path.dirname(_tfos.__file__), "libtfos_tf.so")


@functools.lru_cache(maxsize=None)
def load_operations(tf: Any) -> Any:
    """The ops, from the library beside the extension: both share one libtfos."""
    path = library_path()
    operations = tf.load_op_library(path)
    failure = ctypes.CDLL(path).tfos_tf_failure
    failure.restype = ctypes.c_char_p
    reason = failure()
    if reason is not None:
        raise RuntimeError(f"datasets need TensorFlow 2.15 or later, and this is {tf.__version__}: {reason.decode()}")
    return operations
