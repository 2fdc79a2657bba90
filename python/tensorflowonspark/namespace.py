# SPDX-License-Identifier: Apache-2.0
"""The arguments of a training function, as :mod:`tensorflowonspark.pipeline` passes them to trainers, which need no Spark ML to read them."""

from __future__ import annotations

import argparse
from typing import Any, Iterator, List, Optional

__all__ = ["Namespace"]


class Namespace:
    """Names with values, of a dictionary, an ``argparse.Namespace`` or another of these; or ``argv``, a list of a command's arguments.

    ``name in namespace`` says whether there is one; iteration gives the names, or the arguments.
    """

    argv: Optional[List[str]] = None

    def __init__(self, d: Any) -> None:
        if isinstance(d, list):
            self.argv = d
        elif isinstance(d, dict):
            self.__dict__.update(d)
        elif isinstance(d, (argparse.Namespace, Namespace)):
            self.__dict__.update(vars(d))
        else:
            raise TypeError(f"arguments must be a dictionary, a list, an argparse.Namespace or a Namespace, not {d!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.argv or list(vars(self)))

    def __repr__(self) -> str:
        if self.argv:
            return repr(self.argv)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in sorted(vars(self).items()))})"

    def __eq__(self, other: Any) -> bool:
        if self.argv:
            return self.argv == (other.argv if isinstance(other, Namespace) else other)
        return isinstance(other, Namespace) and vars(self) == vars(other)
