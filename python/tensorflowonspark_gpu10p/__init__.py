# SPDX-License-Identifier: Apache-2.0
"""TensorFlowOnSpark for trainers that share GPUs: :mod:`tensorflowonspark`, where each node has 10 % of a GPU's memory unless it says otherwise."""

from tensorflowonspark import __version__, fork

__all__ = ["__version__"]

fork.install(__name__, gpu_fraction=0.1)
