# SPDX-License-Identifier: Apache-2.0
"""DataFrames to TFRecord files of ``tf.train.Example`` and back, by the names that TensorFlowOnSpark has for it.

``saveAsTFRecords`` and ``loadTFRecords`` are the data source ``tfrecord`` (docs/spark_source.md), which has more to offer, with the choices that
these names imply: floats come back as doubles. Nothing here needs TensorFlow.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, MutableMapping, Sequence, Tuple, Union

from . import _tfos, tfrecord

__all__ = ["fromTFExample", "infer_schema", "isLoadedDF", "loadTFRecords", "loadedDF", "saveAsTFRecords", "toTFExample"]

_CHUNK_ROWS = 1024
_MOST_COMMAS = 16  # in a name that is looked for
_SPECIAL = re.compile(r"[],{}[*?\\]")
_PATTERN = re.compile(r"[]{}[*?\\]")  # what makes a pattern of a path, unless a backslash is before it

#: DataFrames that :func:`loadTFRecords` gave, with the folder that each came from, for as long as they are used.
loadedDF: MutableMapping[Any, str] = weakref.WeakKeyDictionary()


def isLoadedDF(df: Any) -> bool:
    """Whether this DataFrame (not one that was made of it) came from :func:`loadTFRecords`."""
    return df in loadedDF


def saveAsTFRecords(df: Any, output_dir: Union[str, "os.PathLike[str]"]) -> None:
    """Writes the DataFrame's rows as Examples into a new folder, a file for each partition.

    Null columns leave their feature out; doubles and decimals are rounded to the nearest float, and the driver's log has a warning with the
    columns where that is another number, and how many, and the source's options that keep or refuse them.

    Raises:
        pyspark.errors.AnalysisException: the folder exists.
        Exception: Spark's; a column has a type that an Example cannot hold, or a value does not fit; it names column and row.
    """
    tfrecord.add_to(df.sparkSession)
    df.write.format("tfrecord").save(os.fspath(output_dir))


def loadTFRecords(sc: Any, input_dir: Union[str, "os.PathLike[str]"], binary_features: Sequence[str] = ()) -> Any:
    """A DataFrame of the Examples in a folder (or files by a pattern), with a column for each feature of any record, sorted by name.

    Integers are bigint, floats double, bytes string, or binary where they are not all UTF-8; arrays where any record has not exactly
    one value. All records are looked at for that, in a Spark job.

    Args:
        sc: the SparkContext, or a SparkSession.
        input_dir: of the files, in any file system that Spark knows; several are divided by commas. What is there under exactly this name is
            meant, also where it has commas or characters of patterns.
        binary_features: features that are binary though all their bytes are UTF-8.

    Raises:
        Exception: Spark's; a file is damaged, or a feature has different kinds in different records; it names file and feature.
    """
    spark = _session_of(sc)
    tfrecord.add_to(spark)
    input_dir = os.fspath(input_dir)
    paths = _paths_of(spark, input_dir)
    found = spark.read.format("tfrecord").option("inferAll", "true").load(paths)
    frame = spark.read.format("tfrecord").schema(_declared(found.schema, binary_features)).load(paths)
    loadedDF[frame] = input_dir
    return frame


def toTFExample(dtypes: Sequence[Tuple[str, str]]) -> Callable[[Iterable[Any]], Iterator[Tuple[bytearray, None]]]:
    """A function for ``df.rdd.mapPartitions`` that makes of each row a pair of a serialized Example and None. Doubles are rounded to the nearest
    float, and each Python worker warns of it in its executor's log, once.

    Args:
        dtypes: the DataFrame's ``dtypes``.

    Raises:
        ValueError: a column has a type that an Example cannot hold.
    """
    types = dict(dtypes)
    for name, dtype in types.items():
        _arrow_type(name, dtype)

    def encode(rows: Iterable[Any]) -> Iterator[Tuple[bytearray, None]]:
        rows = iter(rows)
        while chunk := list(itertools.islice(rows, _CHUNK_ROWS)):
            yield from ((bytearray(record), None) for record in _encoded(chunk, types))

    return encode


def fromTFExample(iter: Iterable[Any], binary_features: Sequence[str] = ()) -> List[Any]:
    """For ``rdd.mapPartitions``: a Row for each pair of a serialized Example and None, its fields sorted by name.

    All rows of the partition have the same fields; a feature is a list in all of them where any record has more than one value, and None where
    it has none.
    """
    from pyspark.sql import Row

    file = io.BytesIO()
    tfrecord.write(file, (bytes(record[0]) for record in iter), record_type="ByteArray")
    file.seek(0)
    schema = tfrecord.infer_schema(file)
    file.seek(0)
    names = sorted(schema.names)
    rows = []
    for batch in tfrecord.read(file, schema):
        columns = [_python_values(batch.column(name), name in binary_features) for name in names]
        rows += [Row(**dict(zip(names, values))) for values in zip(*columns)] if names else [Row()] * batch.num_rows
    return rows


def infer_schema(example: Any, binary_features: Sequence[str] = ()) -> Any:
    """The StructType that one ``tf.train.Example`` suggests: columns sorted by name, arrays of what has more than one value, and strings of what
    has none."""
    from pyspark.sql.types import ArrayType, BinaryType, DoubleType, LongType, StringType, StructField, StructType

    types = {"int64_list": LongType(), "float_list": DoubleType(), "bytes_list": StringType()}

    def type_of(name: str, feature: Any) -> Any:
        if name in binary_features:
            return BinaryType()
        kind = feature.WhichOneof("kind")
        values = getattr(feature, kind).value if kind else ()
        element = types[kind] if values else StringType()
        return ArrayType(element) if len(values) > 1 else element

    return StructType([StructField(name, type_of(name, feature)) for name, feature in sorted(example.features.feature.items())])


def _session_of(sc: Any) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if hasattr(sc, "applicationId") else sc


def _paths_of(spark: Any, text: str) -> List[str]:
    """What Spark takes for the paths in a text that is one for Hadoop's formats."""
    if not _SPECIAL.search(text):
        return [text]
    names, paths = _tfos.split_names(text), []
    while names:
        # A comma may be one in a name, unless a whole path follows.
        most = next((i for i in range(1, len(names)) if names[i][:1] == "/" or _tfos.split_uri(names[i])[0]), min(len(names), _MOST_COMMAS))
        counts = (i for i in range(most, 0, -1) if (i > 1 or _PATTERN.search(names[0])) and _exists(spark, ",".join(names[:i])))
        count = next(counts, 0)
        paths.append(_escaped(",".join(names[:count])) if count else names[0])
        del names[: count or 1]
    return paths


def _exists(spark: Any, path: str) -> bool:
    """Whether Spark finds something under exactly this name; also where it runs elsewhere."""
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.read.format("binaryFile").load(_escaped(path)).schema)
    except AnalysisException:
        return False


def _escaped(path: str) -> str:
    return _PATTERN.sub(r"\\\g<0>", path)


def _declared(schema: Any, binary_features: Sequence[str]) -> Any:
    """The schema of what was found as these functions give it."""
    from pyspark.sql.types import ArrayType, BinaryType, DoubleType, FloatType, StringType, StructField, StructType

    def declared(name: str, found: Any) -> Any:
        if isinstance(found, ArrayType):
            return ArrayType(declared(name, found.elementType))
        if isinstance(found, FloatType):
            return DoubleType()
        return BinaryType() if isinstance(found, StringType) and name in binary_features else found

    return StructType([StructField(field.name, declared(field.name, field.dataType)) for field in sorted(schema, key=lambda field: field.name)])


def _arrow_type(name: str, dtype: str) -> Any:
    import pyarrow as pa

    scalars: Dict[str, Any] = {
        "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
        "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    }  # fmt: skip
    if dtype in scalars:
        return scalars[dtype]
    if dtype.startswith("array<") and dtype[6:-1] in scalars:
        return pa.list_(scalars[dtype[6:-1]])
    advice = "the data source tfrecord writes it with recordType=SequenceExample; cast it" if dtype.startswith("array<array<") else "cast it"
    raise ValueError(f"column {name!r}: the type {dtype} is not for Examples; {advice}, or leave it out with df.select() or df.drop()")


def _encoded(rows: List[Any], types: Dict[str, str]) -> Iterator[bytes]:
    import pyarrow as pa

    columns = {name: pa.array([row[name] for row in rows], _arrow_type(name, dtype)) for name, dtype in types.items()}
    file = io.BytesIO()
    losses = tfrecord._write(file, pa.table(columns), "Example", None, 6, False)
    if losses:  # without counts, so that Python shows it once
        warnings.warn(
            f"doubles were rounded to float, which is what Examples hold: column {', '.join(name for name, *_ in losses)}. The data source tfrecord "
            "keeps them as they are with the option schemaMode=sidecar, and refuses them with exact=true",
            stacklevel=2,
        )
    file.seek(0)
    return tfrecord.read(file, form="bytes")


def _python_values(column: Any, is_binary: bool) -> List[Any]:
    def bytes_of(value: Any) -> Any:
        if isinstance(value, list):
            return [bytes_of(one) for one in value]
        return bytearray(value.encode() if isinstance(value, str) else value) if isinstance(value, (str, bytes)) else value

    values = column.to_pylist()
    is_text = not is_binary and "binary" not in str(column.type)
    return values if is_text else [bytes_of(value) for value in values]
