# SPDX-License-Identifier: Apache-2.0
"""How many tasks an application can run at a time, by what its executors have, and by its settings."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["await_slots", "cluster_size"]

_FIRST_SECS, _STEADY_SECS = 60, 5  # for the first executor to come, and for others after each


def await_slots(spark: Any, wanted: int, what: str) -> None:
    """Waits until so many tasks can run at a time, for as long as executors come. Over Spark Connect, and with dynamic allocation, only Spark knows.

    ``spark`` is one of :mod:`tensorflowonspark.sessions`; ``what`` is the caller, for the message.

    Raises:
        RuntimeError: there are fewer, and their number stays; names both.
    """
    sc = spark.sc
    if sc is None or (spark.setting("spark.dynamicAllocation.enabled") or "").lower() == "true":
        return
    found = _settled_slots(sc, wanted)
    if found < wanted:
        raise RuntimeError(f"{what} needs {wanted} tasks that run at a time, and this application has slots for {found}: ask for fewer, or give it "
                           "more executors or cores (--num-executors, --executor-cores)")


def _settled_slots(sc: Any, enough: int = sys.maxsize) -> int:
    """How many tasks can run at a time, once that is enough or no more executors come: they do so for a while after the application has started."""
    found, is_local = -1, sc.master.startswith("local[") or sc.master == "local"
    deadline = time.monotonic()
    while True:
        slots = _slots(sc)
        if slots != found:
            found = slots
            deadline = time.monotonic() + (0 if is_local else _STEADY_SECS if slots else _FIRST_SECS)
        if slots >= enough or time.monotonic() >= deadline:
            return slots
        time.sleep(0.1)


def _slots(sc: Any) -> int:
    context = sc._jsc.sc()
    return context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile())


def cluster_size(spark: Any) -> int:
    """How many executors the application's settings give it, else how many task slots it has once no more executors come.

    Raises:
        ValueError: neither is known.
    """
    def number(name: str) -> int:
        text = spark.setting(name) or ""
        return int(text) if text.isdigit() else 0

    is_dynamic = (spark.setting("spark.dynamicAllocation.enabled") or "").lower() == "true"
    on_standalone = number("spark.cores.max") // (number("spark.executor.cores") or sys.maxsize)
    found = (is_dynamic and number("spark.dynamicAllocation.maxExecutors")) or number("spark.executor.instances") or on_standalone
    found = found or (0 if spark.sc is None else _settled_slots(spark.sc))
    if not found:
        raise ValueError("num_executors is not said, and neither settings nor executors tell it: pass it, or set spark.executor.instances")
    return found
