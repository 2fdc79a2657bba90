# SPDX-License-Identifier: Apache-2.0
"""The Spark ML params of :mod:`tensorflowonspark.pipeline`, and what mixes them with the arguments of a program."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional

from pyspark.ml.param import Param, Params, TypeConverters

from .arguments import InputMode, count
from .namespace import Namespace

__all__ = ["HasBatchSize", "HasClusterSize", "HasEpochs", "HasExportDir", "HasGraceSecs", "HasInputMapping", "HasInputMode", "HasKeep",
           "HasMasterNode", "HasModelDir", "HasModelInputMapping", "HasNumPS", "HasOutputMapping", "HasProtocol", "HasReaders",
           "HasSignatureDefKey", "HasSteps", "HasTFRecordDir", "HasTagSet", "HasTensorboard", "Namespace", "TFParams", "TFTypeConverters"]


class TFTypeConverters:
    """What Spark ML's ``TypeConverters`` lack."""

    @staticmethod
    def toDict(value: Any) -> dict:
        """The mapping as a dictionary.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a dictionary such as {{'column': 'tensor'}}, not {value!r}")
        return dict(value)


def _param(name: str, words: str, converter: Any) -> Param:
    return Param(Params._dummy(), name, words, typeConverter=converter)


class HasBatchSize(Params):
    batch_size = _param("batch_size", "rows of a batch", TypeConverters.toInt)

    def setBatchSize(self, value: int) -> Any:
        return self._set(batch_size=value)

    def getBatchSize(self) -> int:
        return self.getOrDefault(self.batch_size)


class HasClusterSize(Params):
    cluster_size = _param("cluster_size", "nodes of the cluster", TypeConverters.toInt)

    def setClusterSize(self, value: int) -> Any:
        return self._set(cluster_size=value)

    def getClusterSize(self) -> int:
        return self.getOrDefault(self.cluster_size)


class HasEpochs(Params):
    epochs = _param("epochs", "how often the data is fed", TypeConverters.toInt)

    def setEpochs(self, value: int) -> Any:
        return self._set(epochs=value)

    def getEpochs(self) -> int:
        return self.getOrDefault(self.epochs)


class HasGraceSecs(Params):
    grace_secs = _param("grace_secs", "seconds that nodes are left after the end of the feed", TypeConverters.toInt)

    def setGraceSecs(self, value: int) -> Any:
        return self._set(grace_secs=value)

    def getGraceSecs(self) -> int:
        return self.getOrDefault(self.grace_secs)


class HasInputMapping(Params):
    input_mapping = _param("input_mapping", "names of tensors by column", TFTypeConverters.toDict)

    def setInputMapping(self, value: Mapping[str, str]) -> Any:
        return self._set(input_mapping=value)

    def getInputMapping(self) -> Dict[str, str]:
        return self.getOrDefault(self.input_mapping)


class HasModelInputMapping(Params):
    model_input_mapping = _param("model_input_mapping", "the input_mapping of the model that is fitted; None: the estimator's own",
                                 TFTypeConverters.toDict)

    def setModelInputMapping(self, value: Mapping[str, str]) -> Any:
        return self._set(model_input_mapping=value)

    def getModelInputMapping(self) -> Optional[Dict[str, str]]:
        return self.getOrDefault(self.model_input_mapping)


class HasInputMode(Params):
    input_mode = _param("input_mode", "who reads the data: 0, TENSORFLOW, or 1, SPARK", TypeConverters.toInt)

    def setInputMode(self, value: int) -> Any:
        return self._set(input_mode=count("input_mode", value, InputMode.TENSORFLOW, InputMode.SPARK, "InputMode.TENSORFLOW or InputMode.SPARK"))

    def getInputMode(self) -> int:
        return self.getOrDefault(self.input_mode)


class HasKeep(Params):
    keep = _param("keep", "names of columns that stand before the results; ['*']: all", TypeConverters.toListString)

    def setKeep(self, value: List[str]) -> Any:
        return self._set(keep=value)

    def getKeep(self) -> List[str]:
        return self.getOrDefault(self.keep)


class HasMasterNode(Params):
    master_node = _param("master_node", "name of the role that one node gets, such as chief", TypeConverters.toString)

    def setMasterNode(self, value: Optional[str]) -> Any:
        return self._set(master_node=value)

    def getMasterNode(self) -> Optional[str]:
        return self.getOrDefault(self.master_node)


class HasModelDir(Params):
    model_dir = _param("model_dir", "folder of checkpoints", TypeConverters.toString)

    def setModelDir(self, value: Optional[str]) -> Any:
        return self._set(model_dir=value)

    def getModelDir(self) -> Optional[str]:
        return self.getOrDefault(self.model_dir)


class HasNumPS(Params):
    num_ps = _param("num_ps", "nodes that are parameter servers", TypeConverters.toInt)
    driver_ps_nodes = _param("driver_ps_nodes", "whether the parameter servers run beside the driver", TypeConverters.toBoolean)

    def setNumPS(self, value: int) -> Any:
        return self._set(num_ps=value)

    def getNumPS(self) -> int:
        return self.getOrDefault(self.num_ps)

    def setDriverPSNodes(self, value: bool) -> Any:
        return self._set(driver_ps_nodes=value)

    def getDriverPSNodes(self) -> bool:
        return self.getOrDefault(self.driver_ps_nodes)


class HasOutputMapping(Params):
    output_mapping = _param("output_mapping", "names of columns by the model's output tensor", TFTypeConverters.toDict)

    def setOutputMapping(self, value: Mapping[str, str]) -> Any:
        return self._set(output_mapping=value)

    def getOutputMapping(self) -> Dict[str, str]:
        return self.getOrDefault(self.output_mapping)


class HasProtocol(Params):
    protocol = _param("protocol", "a word for the training function: nothing here reads it", TypeConverters.toString)

    def setProtocol(self, value: str) -> Any:
        return self._set(protocol=value)

    def getProtocol(self) -> str:
        return self.getOrDefault(self.protocol)


class HasReaders(Params):
    readers = _param("readers", "a number for the training function: nothing here reads it", TypeConverters.toInt)

    def setReaders(self, value: int) -> Any:
        return self._set(readers=value)

    def getReaders(self) -> int:
        return self.getOrDefault(self.readers)


class HasSteps(Params):
    steps = _param("steps", "the most steps to train, for the training function: nothing here reads it", TypeConverters.toInt)

    def setSteps(self, value: int) -> Any:
        return self._set(steps=value)

    def getSteps(self) -> int:
        return self.getOrDefault(self.steps)


class HasTensorboard(Params):
    tensorboard = _param("tensorboard", "whether to start TensorBoard", TypeConverters.toBoolean)

    def setTensorboard(self, value: bool) -> Any:
        return self._set(tensorboard=value)

    def getTensorboard(self) -> bool:
        return self.getOrDefault(self.tensorboard)


class HasTFRecordDir(Params):
    tfrecord_dir = _param("tfrecord_dir", "with InputMode.TENSORFLOW, the new folder for the data as TFRecord files", TypeConverters.toString)

    def setTFRecordDir(self, value: Optional[str]) -> Any:
        return self._set(tfrecord_dir=value)

    def getTFRecordDir(self) -> Optional[str]:
        return self.getOrDefault(self.tfrecord_dir)


class HasExportDir(Params):
    export_dir = _param("export_dir", "folder of the SavedModel, or name of the .keras file", TypeConverters.toString)

    def setExportDir(self, value: Optional[str]) -> Any:
        return self._set(export_dir=value)

    def getExportDir(self) -> Optional[str]:
        return self.getOrDefault(self.export_dir)


class HasSignatureDefKey(Params):
    signature_def_key = _param("signature_def_key", "name of the SavedModel's signature; None: serving_default, or the only one",
                               TypeConverters.toString)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(signature_def_key=None)

    def setSignatureDefKey(self, value: Optional[str]) -> Any:
        return self._set(signature_def_key=value)

    def getSignatureDefKey(self) -> Optional[str]:
        return self.getOrDefault(self.signature_def_key)


class HasTagSet(Params):
    tag_set = _param("tag_set", "tags of the SavedModel's graph, divided by commas; None: the only graph", TypeConverters.toString)

    def setTagSet(self, value: Optional[str]) -> Any:
        return self._set(tag_set=value)

    def getTagSet(self) -> Optional[str]:
        return self.getOrDefault(self.tag_set)


class TFParams(Params):
    """Params beside arguments of a program. The params win where both have a name."""

    args: Any = None

    def merge_args_params(self) -> Any:
        """A copy of ``args`` that has the params, with their defaults, too."""
        merged = Namespace({}) if self.args is None else copy.copy(self.args)
        vars(merged).update({param.name: self.getOrDefault(param) for param in self.params if self.isDefined(param)})
        return merged
