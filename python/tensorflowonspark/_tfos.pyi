# SPDX-License-Identifier: Apache-2.0
"""The extension module: one class a C object, each method one call of the library with the GIL released.

A negative status raises a subclass of ``Error`` named after it (``TimedOutError`` for TIMEOUT, and so on); END and AGAIN come
back as ``None`` or as said below.
"""

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

VERSION: str

class Error(RuntimeError):
    """A failed call: ``str(e)`` is the library's message."""

    status: str  #: name of the status, such as "TIMEOUT"
    os_errno: int

class InvalidError(Error, ValueError): ...
class NoMemoryError(Error, MemoryError): ...
class IoError(Error, OSError): ...
class NotFoundError(Error, LookupError, FileNotFoundError): ...
class CorruptError(Error): ...
class DeniedError(Error, PermissionError): ...
class TimedOutError(Error, TimeoutError): ...
class ClosedError(Error, ConnectionError): ...
class BusyError(Error): ...
class UnsupportedError(Error): ...

RUNNING: int
DRAINED: int
WORKED: int
ENDED: int

class Rendezvous:
    """``tfos_rendezvous_*``. Thread-safe. A context manager."""

    def __init__(
        self, cluster_id: str, key: str, node_count: int, ps_count: int = 0, master_name: Optional[str] = None,
        has_evaluator: bool = False, is_feeding: bool = False, host: Optional[str] = None,
        listen_host: Optional[str] = None, ports: Optional[str] = None, heartbeat_timeout_ms: int = 0,
        queues: Optional[str] = None,
    ) -> None:
        """``queues``: names of each fed node's queues, divided by commas; None: "input"."""
    @property
    def address(self) -> str: ...
    def roles(self) -> str:
        """JSON text: {"ps": [0], "worker": [1, 2]}."""
    def wait(self, phase: int, timeout_ms: int) -> None:
        """Waits in slices of 100 ms, so that Ctrl-C works."""
    def check(self) -> None: ...
    def fail(self, status: str, message: str) -> None: ...
    def plan_feed(self, feed: int, epoch: int, epoch_count: int, partition_count: int = 0, queue: str = "input") -> None:
        """What this feed of the queue is of a training, for those who watch; 0 partitions: not known (yet)."""
    def end_epoch(self, feed: int, queue: str = "input") -> None: ...
    def end_batch(self, feed: int, queue: str = "input") -> None: ...
    def describe_feed(self, queue: str, schema_json: str, first_feed: int = 1, last_feed: int = 0) -> None:
        """What the rows of these feeds look like (0: and of all that follow), any JSON up to 1 MiB; "null": not known. ``Trainer.description``
        gives it out, and a dataset reads that of a Spark schema. InvalidError; NotFoundError names the queues that there are."""
    def end_feed(self) -> None: ...
    def terminate_feed(self) -> None: ...
    def stop(self, grace_ms: int) -> None: ...
    def next_event(self, timeout_ms: int) -> Optional[str]:
        """JSON text, or None after the timeout. ClosedError once closed."""
    def status(self) -> str: ...
    def close(self) -> None: ...

def status_query(timeout_ms: int = 2000) -> str: ...
def request_stop(cluster: str, timeout_ms: int = 10000) -> str:
    """``tfos_cluster_request_stop``. NotFoundError and InvalidError name the clusters that there are."""

class Node:
    """``tfos_node_launch_*``: a node process that this process started. A context manager: close() on exit."""

    def __init__(self, executable: str, config: str, payload: bytes) -> None: ...
    def next(self, timeout_ms: int) -> Optional[str]:
        """The node's next message as JSON text; None after the timeout. Waits in slices, so that signals work."""
    def detach(self) -> None: ...
    def close(self) -> None: ...

class GpuAllocation:
    """``tfos_gpu_allocate``: GPUs that no other process of this user on this machine gets. A context manager: close() on exit."""

    def __init__(self, count: int, preferred: int = 0, timeout_ms: int = 1, owner: str = ...) -> None: ...
    def ids(self) -> str: ...
    def close(self) -> None: ...

def list_rdma_ports(sysfs: Optional[str] = None) -> List[Tuple[str, int, bool, str]]:
    """Of each InfiniBand and RoCE port of this machine its device, its number, whether it is active, and "InfiniBand" or "RoCE"."""

def list_gpus() -> List[bool]:
    """Of each NVIDIA GPU of this machine, whether no process computes on it. UnsupportedError: there is no driver, or it does not answer."""

def serve_forks(listener_fd: int, executor_pid: int, run: Callable[[Dict[bytes, bytes]], None]) -> None:
    """The life of a fork server; ``run(environment)`` is called in each trainer and does not return."""

def find_executor(pid: int) -> int:
    """The pid of the JVM (or other process) that runs the Spark task ``pid``."""

def check_spark_schema(json: str) -> None:
    """UnsupportedError, naming the column and its type, when rows of a DataFrame of this schema (``StructType.json()``) cannot be fed."""

def check_result_schema(json: str) -> None:
    """UnsupportedError, naming the column and its type, when the JVM cannot make rows of this schema (``StructType.json()``) of results."""

class FeedWriter:
    """One attempt to feed one partition. Asks the rendezvous which node to feed, then opens a channel to it."""

    def __init__(
        self, address: str, cluster_id: str, key: str, feed: int, partition: int, attempt: int,
        results: bool = False, queue: str = "input", job: Optional[str] = None, timeout_ms: int = 0, channel_size: int = 0, remote: bool = False,
        ahead_rows: int = 0, stage: int = ..., allow_pickle: bool = True,
    ) -> None:
        """``job``: whom to feed, "trainers" or "evaluator"; None: trainers. ``remote=True`` feeds over TCP even where shared memory would do (for tests).
        ``ahead_rows``, with results: so many rows wait for the trainer at most, before a batch is fed; 0: as many as the channel holds.
        ``stage``: of a feed with results, the Spark stage that computes them; feed and attempt are numbered anew by it.
        ``allow_pickle=False``: rows and results that would have to be pickled are refused."""
    @property
    def node(self) -> Optional[str]:
        """"worker:0", or None when the partition is to be skipped."""
    def feed(self, rows: Iterable[Any]) -> int:
        """Packs the rows into columns and feeds them in batches; returns how many rows were fed. Stops early,
        without an error, when the reader wants no more. Skips the rows that earlier attempts delivered. Marks the partition complete at the
        end. An exception of the iterator passes through and leaves the partition incomplete."""
    def append(self, batch: Any) -> bool:
        """Feeds an Arrow batch, anything with ``__arrow_c_array__`` such as a ``pyarrow.RecordBatch``: its rows are Rows of its columns.
        Skips the rows that earlier attempts delivered. False, and no error, once the reader wants no more. Not beside ``feed()``."""
    def finish(self) -> int:
        """Marks the partition complete after the last batch; returns how many rows were fed."""
    def results(self, rows: Iterable[Any]) -> "Iterable[Any]":
        """An iterator: feeds the rows and gives one result a row, in order, as they come."""
    def result_batches(self, batches: Iterable[Any]) -> "Iterable[ArrowBatch]":
        """An iterator: feeds Arrow batches as ``append()`` takes them and gives the results as such, as they come, in order: columns both ways. They
        own their memory, and are cut otherwise than the batches that were fed."""
    def close(self) -> None: ...

class ArrowBatch:
    """A batch in Arrow's layout, for ``pyarrow.record_batch()`` and others. Its schema may have the metadata of docs/protocol.md."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> "tuple[Any, Any]":
        """Schema and array as capsules; InvalidError the second time."""

class Trainer:
    """``tfos_trainer_*``: this process's link to its node. There is one per process; thread-safe."""

    def __init__(self, fd: int = 3) -> None: ...
    @property
    def context(self) -> str:
        """JSON text (docs/protocol.md, "Context")."""
    def payload(self) -> bytes: ...
    def open_feed(self, queue: str = "input") -> "FeedReader":
        """The queue's reader; all of one queue read on where the one before stopped. NotFoundError names the queues that there are."""
    def description(self, queue: str = "input", timeout_ms: int = 0) -> Optional[str]:
        """What the driver last said of the queue's rows, JSON text; waits for it (0: 600 s), and gives None after that."""
    def agree(self, name: str, value_json: str, timeout_ms: int = 0) -> str:
        """JSON array of all members' values. 0: 600 s."""
    def open_collective(
        self, name: str, transport: str = "auto", trusted: bool = False, parameters: bool = False, gpu: bool = False,
        host: Optional[str] = None, open_timeout_ms: int = 0, stall_timeout_ms: int = 0, silence_timeout_ms: int = 0,
    ) -> "Collective":
        """A group of all chiefs, masters and workers, in the order of executor ids; all open the groups of one name in one order."""
    def report(self, values_json: str) -> None: ...
    def put_result(self, text: str) -> None:
        """A part of what the function returned, 1 MiB at most: an event "result" in the driver."""
    def release_port(self) -> None: ...
    def terminate(self) -> None: ...
    def fail(self, message: str) -> None: ...
    def close(self) -> None: ...

class Collective:
    """``tfos_collective_*``: operations among the processes of a group. Any thread; one operation at a time, a second one is refused (BusyError).
    ``dtype``: "float32", "bfloat16" and so on, whose size the arrays' elements have. A context manager."""

    def __init__(
        self, rank: int, size: int, exchange: "Callable[[str, str], str]", key: bytes, name: str, transport: str = "auto", trusted: bool = False,
        parameters: bool = False, gpu: bool = False, host: Optional[str] = None, open_timeout_ms: int = 0, stall_timeout_ms: int = 0,
        silence_timeout_ms: int = 0,
    ) -> None:
        """``exchange``: gets a name and this rank's value, JSON text, and gives the array of all ranks' values. ``key``: 32 bytes. ``transport``:
        "auto" or "tcp". ``trusted``: TCP in the clear. ``parameters``: the group has some that are trained
        asynchronously. ``gpu``: ops of the group may run on a GPU of this process. 0: 600 s to open, 600 s without progress, 10 s without a
        sign of life."""
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def number(self) -> int: ...
    def barrier(self, name: str) -> None: ...
    def all_reduce(self, name: str, arrays: "list[Any]", dtype: str, reduction: str = "sum") -> None:
        """In place, on C-contiguous numpy arrays. ``reduction``: "sum", "mean", "min", "max"."""
    def broadcast(self, name: str, arrays: "list[Any]", dtype: str, root: int = 0) -> None: ...
    def all_gather(self, name: str, array: Any, dtype: str) -> "tuple[bytearray, list[int]]":
        """The bytes of all ranks' elements, in the order of ranks, and how many elements each gave."""
    def reduce_scatter(self, name: str, array: Any, counts: "list[int]", dtype: str, reduction: str = "sum") -> bytearray:
        """The bytes of this rank's part of the reduction, as many elements as ``counts`` says. The array is not kept."""
    def figures(self) -> "dict[str, int]":
        """operations, bytes, duration_us, wait_us, last_rank (who came last most often since the last call; -1: nobody), steps, data_us (for which
        steps waited for their data; -1: not known)."""
    def mark_steps(self, is_begin: bool) -> None:
        """A call that takes steps begins, or has ended; the op TfosHaveData marks when a step has its data. For the figures."""
    def close(self) -> None: ...
    def __enter__(self) -> "Collective": ...
    def __exit__(self, *args: Any) -> None: ...

class FeedReader:
    """Rows and arrays from the node's feed. Thread-safe: calls take turns, and one that waits for rows lets others come in."""

    def next_rows(self, count: int, stop_at_partition: bool, stop_at_epoch: bool = False, timeout_ms: int = -1) -> "Optional[list[Any]]":
        """Up to ``count`` rows as the Python objects that were fed: equal in value and type. Waits for more until ``count``, the end of the feed, the end of
        a partition that gave rows (``stop_at_partition``; rows of two partitions are then never in one call, nor ever when they want results) or of the
        epoch (``stop_at_epoch``). Each epoch's end gives one ``[]`` of its own, after the call with its last rows; ``None`` once the feed has ended and
        nothing is left. After ``timeout_ms`` the rows that have come; TimedOutError when there are none."""
    def next_arrays(self, count: int, stop_at_partition: bool = False, stop_at_epoch: bool = False, timeout_ms: int = -1) -> Any:
        """The same rows as numpy arrays that own their memory, first dimension the rows: a tuple of arrays for rows that are
        tuples or lists, a dict for dicts and Rows, one array for scalars and arrays. Numbers keep their dtype (float: float64, int:
        int64, bool: bool; columns of Arrow batches as docs/protocol.md says); a list of n numbers is (rows, n), an array of shape s
        is (rows, *s); text and bytes are object arrays;
        lists of numbers whose type leaves their length open are (rows, n, ...) where all of the call's rows have one length at each level, else
        object arrays of arrays; other objects are object arrays. InvalidError, naming the partition, row and column, when the shape or
        type changes between rows that should go into one array, or a number is None. ``()`` at an epoch's end; ``None`` once the feed has ended."""
    def put_results(self, results: "list[Any]") -> None:
        """Results for the oldest rows given out and not yet answered; InvalidError, naming the partition and both counts, when they are
        more than the rows that the oldest unanswered partition has given out."""
    def put_arrays(self, arrays: Any) -> None:
        """The same as numpy arrays whose first dimension is the rows: one array (a row's result is one value), a tuple of them (a tuple) or a
        dict (a dict). InvalidError, naming the column, for lengths that differ and dtypes that cannot be sent."""
    @property
    def at_end(self) -> bool:
        """Whether the feed has ended and all rows were given out."""
    def terminate(self) -> None: ...

class Dataset:
    """``tfos_dataset_*``: the rows of a trainer's queue as batches of tensors, which TensorFlow's op TfosNextBatch takes. One at a time: an
    earlier one of the queue is closed, and InvalidError says that it, or a DataFeed, is being read."""

    def __init__(
        self, trainer: Trainer, batch_size: int, drop_remainder: bool = False, uneven: str = "ignore",
        columns: "list[tuple[str, str, Optional[tuple[int, ...]], Optional[str]]]" = ..., selection: "Optional[list[str]]" = None,
        null_value: Optional[str] = None, shuffle_rows: int = 0, seed: int = 0, queue: str = "input", like: "Optional[Dataset]" = None,
        agree_timeout_ms: int = 0,
    ) -> None:
        """``uneven``: "ignore", "pad", "join", "stop". ``columns``: name, form ("auto", "dense", "ragged", "padded", "sparse"), shape of a
        row, and text for nulls of each column of which something is asked. ``like``: a dataset whose structure, which is known, this one has."""
    @property
    def number(self) -> int: ...
    def specs(self, timeout_ms: int) -> "Optional[tuple[str, list[tuple[tuple[str, ...], str, str, tuple[Optional[int], ...]]]]]":
        """The structure of a row ("tuple", "dict", "value") and path, role ("dense", "ragged_values", "row_splits", "sparse_indices",
        "sparse_values", "sparse_shape", "weights"), dtype and shape of each tensor. Waits until it is known (-1: without limit); None when the
        feed ends without a row."""
    def close(self) -> None: ...

def pack(rows: "list[Any]", columns: bool = False) -> "list[ArrowBatch]":
    """The rows as batches, cut as a feed cuts them. ``columns``: as results for a DataFrame are, columns of the same values, not the same objects."""

def unpack(batch: Any) -> "list[Any]":
    """The rows of a batch, anything with ``__arrow_c_array__``."""

def unpack_arrays(batches: Any) -> Any:
    """The arrays of a batch, or of a list of them, as ``FeedReader.next_arrays()`` gives them."""

class ExampleReader:
    """``tfos_example_reader_*``: a file of Examples as Arrow batches. One thread at a time. A context manager."""

    def __init__(
        self, path: str, schema: Any, type: int = 0, compression: int = 0, mode: int = 0, batch_rows: int = 0, max_record_size: int = 0,
        begin: int = 0, end: int = 0, file: Any = None,
    ) -> None:
        """``file``: an open binary file object, which stays open, instead of the file at ``path``, which is its name then.
        ``schema``: anything with ``__arrow_c_schema__``. ``type``, ``compression`` and ``mode``: the values of ``enum tfos_record_type``,
        ``tfos_compression`` and ``tfos_record_mode``; ``begin`` and ``end``: a range of bytes (``<tfos/record.h>``)."""
    def next(self) -> Optional[ArrowBatch]: ...
    def take_damages(self) -> "list[tuple[str, int, int, str]]":
        """What was skipped since the last call: kind, offset, size, message."""
    @property
    def counts(self) -> "tuple[int, int, int, int]":
        """Records, their bytes, damages, bytes skipped; so far."""
    def close(self) -> None: ...

class ExampleWriter:
    """``tfos_example_writer_*``: Arrow batches to a file of Examples. One thread at a time. A context manager."""

    def __init__(
        self, path: str, schema: Any, type: int = 0, compression: int = 0, level: int = 0, exact: bool = False,
        file: Any = None,
    ) -> None:
        """``file`` as for ``ExampleReader``; ``finish()`` flushes it."""
    def append(self, batch: Any) -> None:
        """Anything with ``__arrow_c_array__``, of the schema."""
    def finish(self) -> "list[tuple[str, int, int]]":
        """Makes the file appear; returns the columns with numbers that were rounded: name, how many, how many of them became infinite."""
    def close(self) -> None: ...

class FileWriter:
    """``tfos_stream_open_writer()``: bytes to a file that appears when it is whole. One thread at a time. A context manager."""

    def __init__(self, path: str) -> None: ...
    def write(self, data: bytes) -> None: ...
    def finish(self) -> None:
        """Makes the file appear."""
    def close(self) -> None: ...

class FileReader:
    """``tfos_stream_open_reader()``: bytes of a file, which can seek. One thread at a time. A context manager."""

    def __init__(self, path: str) -> None: ...
    def read(self, size: int) -> bytes:
        """From 1 to ``size`` bytes; none at the end."""
    def seek(self, offset: int) -> None:
        """From the beginning."""
    def close(self) -> None: ...

class RecordDataset:
    """``tfos_record_dataset_*``: TFRecord files as batches of tensors, whose passes are begun by the op TfosBeginPass."""

    def __init__(
        self, paths: "list[str]", schema: Any, batch_size: int, drop_remainder: bool = False,
        columns: "list[tuple[str, str, Optional[tuple[int, ...]], Optional[str]]]" = ..., null_value: Optional[str] = None,
        shuffle_rows: int = 0, type: int = 0, compression: int = 0, mode: int = 0, max_record_size: int = 0,
    ) -> None:
        """Finds the structure: where lengths of lists decide it, by the first batch of ``paths``, which are not open afterwards.
        ``columns`` as for ``Dataset``, the rest as for ``ExampleReader``."""
    def specs(self) -> "tuple[str, list[tuple[tuple[str, ...], str, str, tuple[Optional[int], ...]]]]":
        """As ``Dataset.specs()``."""
    @property
    def number(self) -> int: ...
    @property
    def counts(self) -> "tuple[int, int, int, int]":
        """Records, their bytes, damages, bytes skipped; of all passes so far."""
    def close(self) -> None: ...

def find_files(name: str, system: Any = None) -> "list[str]":
    """The files that a name matches, sorted, as ``<tfos/file_list.h>`` says. ``system``: where a URI is looked up, by ``look(name)``, 0 for
    nothing, 1 for a file, 2 for a folder, and ``list(folder)``, pairs of name and kind. NotFoundError, InvalidError."""

def look_at(name: str) -> "tuple[int, int]":
    """The ``enum tfos_file_kind`` of what is there under a name, 0 where nothing is, and its bytes. UnsupportedError: no file system has such
    names."""

def set_hadoop_jars(folder: str) -> None:
    """The folder of Hadoop's jars where the environment names none."""

def new_file(name: str) -> Optional[str]:
    """The path of a file that is to be written; None for a URI of another file system. InvalidError: the name may mean two files."""

def compression_of_name(name: str) -> int:
    """How a file of this name is to be written, as ``enum tfos_compression`` has it. UnsupportedError: as TensorFlow could not read it."""

def split_names(names: str) -> "list[str]":
    """The names that are divided by commas, but for those in braces."""

def split_uri(name: str) -> "tuple[str, str]":
    """Scheme and host of a URI, and its path as it is; an empty text and the name where that is a path."""

def infer_schema(
    paths: "list[str]", type: int = 0, compression: int = 0, mode: int = 0, limit: int = 0, max_record_size: int = 0, file: Any = None
) -> str:
    """What files say of their schema, as JSON text for ``merge_schema_inferences()``. ``limit``: records of each; 0: all. ``file``: an object
    to read in place of the only path."""

def merge_schema_inferences(inferences: "list[str]") -> Any:
    """The Arrow schema, a capsule, with which all files can be read."""
