# SPDX-License-Identifier: Apache-2.0
"""Trained models in the Python workers of Spark's executors: SavedModels, ``.keras`` files and checkpoints of TensorFlow 1, loaded once a worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import files, fs, gpus

__all__ = ["InputSpec", "Model", "ModelRequest", "OutputSpec", "free_functions", "graphs_of", "import_tensorflow", "open_model",
           "restore_graph"]

_DEFAULT_SIGNATURE = "serving_default"
_INIT_SIGNATURE = "__saved_model_init_op"
_MOST_NAMES = 30  # in a message

_loaded: Dict[Any, "Model"] = {}  # the model that this process has loaded last


class ModelRequest(NamedTuple):
    """Which model is wanted, and which of its tensors; without names all those of its signature."""

    export_dir: Optional[str]
    model_dir: Optional[str]
    tag_set: Optional[str]
    signature_def_key: Optional[str]
    inputs: Tuple[str, ...]
    outputs: Tuple[str, ...]
    num_gpus: Optional[int]


class InputSpec(NamedTuple):
    """What a model wants at an input."""

    dtype: Any  #: TensorFlow's
    shape: Optional[Tuple[Optional[int], ...]]  #: with the rows; None: not known
    form: str = "dense"  #: "dense", "ragged" or "sparse"


class OutputSpec(NamedTuple):
    """What a model gives at an output."""

    dtype: Any  #: TensorFlow's
    rank: Optional[int]  #: None: not known


class Graph(NamedTuple):
    """A signature as TensorFlow's C library finds it: names of the graph's tensors."""

    path: str
    tags: List[str]
    inputs: Dict[str, str]
    outputs: Dict[str, str]


class Model(NamedTuple):
    """A model that can be called with tensors by name."""

    inputs: Dict[str, InputSpec]
    outputs: Dict[str, OutputSpec]
    call: Callable[[Dict[str, Any]], Dict[str, Any]]
    graph: Optional[Graph] = None  #: None: it runs in Python only


def import_tensorflow(num_gpus: Optional[int]) -> Any:
    """TensorFlow, for this worker of Spark's: with as many threads as its task has cores, and the task's GPUs."""
    if "tensorflow" not in sys.modules:
        from pyspark import TaskContext

        context = TaskContext.get()
        for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
            os.environ.setdefault(name, str(context.cpus() if context else 0))
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus.take(num_gpus))
    import tensorflow

    return tensorflow


def open_model(request: ModelRequest) -> Model:
    """The model, loaded unless this process has it already, as it is on disk now.

    Raises:
        ValueError: there is no such model, signature or tensor; names those that there are.
    """
    tf = import_tensorflow(request.num_gpus)
    path, load = _located(tf, request)
    key = (request, path, _state(tf, path))
    if key not in _loaded:
        _loaded.clear()  # before the next is loaded: both may not fit into memory
        model = load(tf, path, request)
        _check_names(model, request, path)
        _loaded[key] = model
    return _loaded[key]


def _located(tf: Any, request: ModelRequest) -> Tuple[str, Callable[[Any, str, ModelRequest], Model]]:
    """Where the model is, and what loads it."""
    name = request.export_dir or request.model_dir
    if name is None:
        raise ValueError("there is no model to load: set export_dir to the folder of a SavedModel or to a .keras file (setExportDir)")
    path = files.for_tensorflow(name).rstrip("/")
    if "://" in path:
        fs.register_on_import()
    exists = tf.io.gfile.exists
    if exists(f"{path}/saved_model.pb") or exists(f"{path}/saved_model.pbtxt"):
        return path, _load_saved_model
    if path.endswith(".keras") and exists(path):
        return path, _load_keras
    checkpoint = tf.train.latest_checkpoint(path) if request.export_dir is None else None
    if checkpoint and exists(f"{checkpoint}.meta"):
        return checkpoint, _load_checkpoint
    if not exists(path):
        raise ValueError(f"there is no model at {path!r}: nothing is there on this executor's machine; export the model to a folder that all executors see")
    found = sorted(tf.io.gfile.listdir(path)) if tf.io.gfile.isdir(path) else ["which is a file"]
    raise ValueError(f"{path!r} is no SavedModel, no .keras file and has no checkpoint with a .meta file: it has {_listed(found) or 'nothing'}")


def _state(tf: Any, path: str) -> Tuple[Any, ...]:
    """What changes when another model is written there."""
    parts = [name for name in (path, f"{path}/saved_model.pb", f"{path}/variables/variables.index", f"{path}.index") if tf.io.gfile.exists(name)]
    return tuple((stat.length, stat.mtime_nsec) for stat in map(tf.io.gfile.stat, parts))


def _listed(names: List[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(map(repr, names[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")


def _check_names(model: Model, request: ModelRequest, path: str) -> None:
    for kind, wanted, present in (("input", request.inputs, list(model.inputs)), ("output", request.outputs, list(model.outputs))):
        for name in wanted:
            if name not in present:
                raise ValueError(f"{kind}_mapping: the model in {path!r} has no {kind} {name!r}; it has {_listed(present)}")
    missing = [name for name in model.inputs if request.inputs and name not in request.inputs]
    if missing:
        raise ValueError(f"input_mapping: the model in {path!r} also needs input {missing[0]!r}; map a column to each of {_listed(list(model.inputs))}")


# -- SavedModels


def graphs_of(tf: Any, path: str) -> List[Any]:
    """The SavedModel's MetaGraphDefs."""
    return list(_read_saved_model(tf, path).meta_graphs)


def _read_saved_model(tf: Any, path: str) -> Any:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    if tf.io.gfile.exists(f"{path}/saved_model.pb"):
        with tf.io.gfile.GFile(f"{path}/saved_model.pb", "rb") as file:
            saved.ParseFromString(file.read())
    else:
        from google.protobuf import text_format

        with tf.io.gfile.GFile(f"{path}/saved_model.pbtxt", "r") as file:
            text_format.Parse(file.read(), saved)
    return saved


def _load_saved_model(tf: Any, path: str, request: ModelRequest) -> Model:
    try:
        saved = _read_saved_model(tf, path)
    except Exception as error:  # protobuf's own classes differ between its versions
        raise ValueError(f"{path!r} is no SavedModel: its saved_model.pb cannot be read: {error}") from error
    graphs = {tuple(sorted(graph.meta_info_def.tags)): graph for graph in saved.meta_graphs}
    tag_sets = [list(tags) for tags in graphs]
    is_portable = not any(_names_a_node(graph.graph_def.node) for graph in saved.meta_graphs) and not _functions_name_a_node(saved)
    tags = None if request.tag_set is None else sorted(filter(None, map(str.strip, request.tag_set.split(","))))
    if tags is None and len(tag_sets) > 1 or tags is not None and tags not in tag_sets:
        raise ValueError(f"tag_set: the SavedModel in {path!r} has no graph {request.tag_set!r}; it has {_listed([','.join(tags) for tags in tag_sets])}")
    with _without_nodes(tf, path, saved) as folder:
        loaded = tf.saved_model.load(folder, tags=tags)
    signatures = {name: function for name, function in loaded.signatures.items() if name != _INIT_SIGNATURE}
    key = request.signature_def_key
    if key is None:
        key = next(iter(signatures)) if len(signatures) == 1 else _DEFAULT_SIGNATURE
        if key not in signatures or not _has_names(signatures[key], request):
            with _without_nodes(tf, path, saved) as folder:
                graph = _load_graph(tf, folder, tags or tag_sets[0])
            if graph is not None and all(_tensor(graph, name) is not None for name in (*request.inputs, *request.outputs)) and request.inputs:
                return _graph_model(tf, graph, request)
    if key not in signatures:
        raise ValueError(f"signature_def_key: the SavedModel in {path!r} has no signature {key!r}; it has {_listed(list(signatures)) or 'none'}")
    model = _signature_model(tf, loaded, signatures[key], request)
    return model._replace(graph=_graph_of(path, graphs[tuple(tags or tag_sets[0])], key)) if is_portable else model


def _names_a_node(nodes: Iterable[Any]) -> bool:
    return any("/job:" in node.device for node in nodes)


def _functions_name_a_node(saved: Any) -> bool:
    return any(_names_a_node(function.node_def) for graph in saved.meta_graphs for function in graph.graph_def.library.function)


@contextlib.contextmanager
def _without_nodes(tf: Any, path: str, saved: Any) -> Iterator[str]:
    """Where a model is whose functions run on any node: the folder itself, or a copy of one that names the node that trained."""
    if not _functions_name_a_node(saved):
        yield path
        return
    freed = type(saved)()
    freed.CopyFrom(saved)
    for graph in freed.meta_graphs:
        free_functions(graph)
    with tempfile.TemporaryDirectory(prefix="tfos-model-") as folder:
        for below in filter(lambda name: tf.io.gfile.isdir(f"{path}/{name}"), ("variables", "assets")):
            os.mkdir(f"{folder}/{below}")
            for name in tf.io.gfile.listdir(f"{path}/{below}"):
                tf.io.gfile.copy(f"{path}/{below}/{name}", f"{folder}/{below}/{name}")
        with open(f"{folder}/saved_model.pb", "wb") as file:
            file.write(freed.SerializeToString())
        yield folder


def _signature_model(tf: Any, loaded: Any, function: Any, request: ModelRequest) -> Model:
    outputs = {name: OutputSpec(spec.dtype, spec.shape.rank) for name, spec in function.structured_outputs.items()}
    inputs = _inputs_of(function, request)

    def call(tensors: Dict[str, Any], model: Any = loaded) -> Dict[str, Any]:  # the model's variables live as long as it does
        given = {}
        for name, tensor in tensors.items():
            parts = tf.nest.flatten(tensor, expand_composites=True)
            given.update({name if i == 0 else f"{name}_{i}": part for i, part in enumerate(parts)})
        return function(**given)

    return Model(inputs, outputs, call)


def _graph_of(path: str, graph: Any, key: str) -> Optional[Graph]:
    """The signature's tensors; None where Python's loader alone makes it."""
    if key not in graph.signature_def:
        return None
    signature = graph.signature_def[key]
    ends = [{name: info.name for name, info in infos.items()} for infos in (signature.inputs, signature.outputs)]
    return Graph(path, list(graph.meta_info_def.tags), *ends)


def _inputs_of(function: Any, request: ModelRequest) -> Dict[str, InputSpec]:
    """The signature's inputs. It has the parts of a ragged or sparse one as ``name``, ``name_1``, ...; who maps a part means that alone."""
    specs = function.structured_input_signature[1]
    parts: Dict[str, List[Any]] = {}
    for name in specs:
        companions: List[Any] = []
        while f"{name}_{len(companions) + 1}" in specs and f"{name}_{len(companions) + 1}" not in request.inputs:
            companions.append(specs[f"{name}_{len(companions) + 1}"])
        parts[name] = companions
    inputs, taken = {}, set()
    for name, spec in specs.items():
        companions = parts[name]
        others = [(other.dtype.name, other.shape.rank) for other in companions]
        if len(companions) == 2 and (spec.dtype.name, spec.shape.rank) == ("int64", 2) and others[0][1] == 1 and companions[1].shape.as_list() == [2]:
            inputs[name] = InputSpec(companions[0].dtype, None, "sparse")
        elif companions and spec.shape.rank is not None and all(other == ("int64", 1) for other in others):
            inputs[name] = InputSpec(spec.dtype, None, "ragged")
        else:
            inputs[name] = InputSpec(spec.dtype, None if spec.shape.rank is None else tuple(spec.shape.as_list()))
            continue
        taken.update(f"{name}_{i + 1}" for i in range(len(companions)))
    return {name: spec for name, spec in inputs.items() if name not in taken}


def _has_names(function: Any, request: ModelRequest) -> bool:
    return set(request.inputs) <= set(_inputs_of(function, request)) and set(request.outputs) <= set(function.structured_outputs)


# -- Keras


def _load_keras(tf: Any, path: str, request: ModelRequest) -> Model:
    local = path
    folder = None
    if not os.path.exists(path):
        folder = tempfile.mkdtemp(prefix="tfos-model-")
        local = os.path.join(folder, os.path.basename(path))
        tf.io.gfile.copy(path, local)
    try:
        model = tf.keras.models.load_model(local, compile=False)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    try:
        structure, results = model.input, model.output
    except (AttributeError, ValueError) as error:
        raise ValueError(f"the model in {path!r} has no fixed inputs and outputs: build it with keras.Input, or export a SavedModel") from error
    names = list(results) if isinstance(results, dict) else list(getattr(model, "output_names", ()))
    ends = tf.nest.flatten(results)
    if not isinstance(results, dict) and len(names) != len(ends):
        names = [end.name for end in ends]
    outputs = {name: OutputSpec(tf.as_dtype(end.dtype), len(end.shape)) for name, end in zip(sorted(names) if isinstance(results, dict) else names, ends)}
    inputs = {begin.name: _keras_spec(tf, begin) for begin in tf.nest.flatten(structure)}

    @tf.function(reduce_retracing=True)
    def compute(tensors: Dict[str, Any]) -> Any:
        return tf.nest.flatten(model(tf.nest.map_structure(lambda begin: tensors[begin.name], structure), training=False))

    return Model(inputs, outputs, lambda tensors: dict(zip(outputs, compute(tensors))))


def _keras_spec(tf: Any, begin: Any) -> InputSpec:
    spec = getattr(begin, "type_spec", None)
    is_ragged = getattr(begin, "ragged", False) or isinstance(spec, tf.RaggedTensorSpec)
    is_sparse = getattr(begin, "sparse", False) or isinstance(spec, tf.SparseTensorSpec)
    return InputSpec(tf.as_dtype(begin.dtype), tuple(begin.shape), "ragged" if is_ragged else "sparse" if is_sparse else "dense")


# -- graphs of TensorFlow 1, whose tensors are known by name


def _load_graph(tf: Any, path: str, tags: List[str]) -> Any:
    session = tf.compat.v1.Session(graph=tf.Graph())
    try:
        with session.graph.as_default():
            tf.compat.v1.saved_model.loader.load(session, tags, path)
    except Exception:  # what TensorFlow 2 has written need not be one
        session.close()
        return None
    return session


def _load_checkpoint(tf: Any, path: str, request: ModelRequest) -> Model:
    session = tf.compat.v1.Session(graph=tf.Graph())
    restore_graph(tf, session, path)
    return _graph_model(tf, session, request)


def restore_graph(tf: Any, session: Any, checkpoint: str) -> None:
    """Makes the session's empty graph that of a checkpoint, with its values, on this process's devices."""
    with tf.io.gfile.GFile(f"{checkpoint}.meta", "rb") as file:
        meta_graph = tf.compat.v1.MetaGraphDef.FromString(file.read())
    free_functions(meta_graph)
    with session.graph.as_default():
        tf.compat.v1.train.import_meta_graph(meta_graph, clear_devices=True).restore(session, checkpoint)


def free_functions(meta_graph: Any) -> None:
    """Lets the graph's functions, such as branches of ``tf.cond``, run on any device. ``clear_devices`` of TensorFlow leaves them on the node that trained."""
    for function in meta_graph.graph_def.library.function:
        for node in function.node_def:
            node.device = ""


def _tensor(session: Any, name: str) -> Any:
    try:
        return session.graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError):
        return None


def _graph_model(tf: Any, session: Any, request: ModelRequest) -> Model:
    """The named tensors; of what is not there the graph's placeholders and last tensors are listed."""
    found = {name: _tensor(session, name) for name in (*request.inputs, *request.outputs)}
    operations = session.graph.get_operations()
    starts = {name: found[name] for name in request.inputs if found[name] is not None}
    ends = {name: found[name] for name in request.outputs if found[name] is not None}
    if len(starts) < len(request.inputs) or not starts:
        starts = {op.name: op.outputs[0] for op in operations if op.type.startswith("Placeholder")}
    if len(ends) < len(request.outputs) or not ends:
        ends = {op.name: op.outputs[0] for op in operations if op.outputs and not op.outputs[0].consumers()}

    def call(tensors: Dict[str, Any]) -> Dict[str, Any]:
        return session.run({name: ends[name] for name in request.outputs}, {starts[name]: tensor.numpy() for name, tensor in tensors.items()})

    inputs = {name: InputSpec(tensor.dtype.base_dtype, None if tensor.shape.rank is None else tuple(tensor.shape.as_list())) for name, tensor in starts.items()}
    return Model(inputs, {name: OutputSpec(tensor.dtype.base_dtype, tensor.shape.rank) for name, tensor in ends.items()}, call)
