# SPDX-License-Identifier: Apache-2.0
"""The interface of spark-tensorflow-distributor 1.0: ``MirroredStrategyRunner(num_slots=8).run(train_fn)``."""

from .mirrored_strategy_runner import MirroredStrategyRunner

__all__ = ["MirroredStrategyRunner"]
