# SPDX-License-Identifier: Apache-2.0
"""Classes that take the place of Keras's, or of the user's, and are saved under their names."""

from __future__ import annotations

import contextlib
from typing import Any, Dict

__all__ = ["disguise"]


def disguise(base: type, bases: tuple, namespace: Dict[str, Any]) -> type:
    """A class with the name and module of ``base``, so that files that name it are loaded without this package."""
    made = type(base.__name__, bases, {**namespace, "__doc__": base.__doc__, "__module__": base.__module__})
    made.__qualname__ = base.__qualname__
    with contextlib.suppress(ImportError, AttributeError):
        from keras.src import api_export
        from keras.src.saving import object_registration

        for names in (api_export.REGISTERED_OBJS_TO_NAMES, object_registration.GLOBAL_CUSTOM_NAMES):
            if base in names:
                names[made] = names[base]
    return made
