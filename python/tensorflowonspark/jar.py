# SPDX-License-Identifier: Apache-2.0
"""tfos.jar, which this package contains, and how it is added to a Spark application that runs already.

Before an application starts, Spark's own ways do: ``spark-submit --jars "$(python -c 'from tensorflowonspark import jar; print(jar.path())')"``
or ``spark.jars``. A notebook has a session already, and calls ``add_to(spark)``.
"""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any, Dict, Optional

from . import _tfos

__all__ = ["add_to", "path", "why_not"]

_LOADER = "org.apache.spark.util.MutableURLClassLoader"

_lock = threading.Lock()
_reasons: Dict[str, Optional[str]] = {}  # by application, or session of Connect: why it cannot use the jar, None where it can


def path() -> str:
    """Where tfos.jar is on this machine.

    Raises:
        tensorflowonspark.errors.UnsupportedError: this package was built without it.
    """
    jar = _place()
    if not os.path.exists(jar):
        raise _tfos.UnsupportedError(_missing(jar))
    return jar


def add_to(spark: Any) -> None:
    """Puts tfos.jar onto a live application, driver and executors, unless it is there already; cheap when it is.

    Args:
        spark: a SparkSession, also of Spark Connect, or a SparkContext.

    Raises:
        tensorflowonspark.errors.UnsupportedError: that cannot be; the message says why, and what to do.
    """
    context = spark if hasattr(spark, "applicationId") else getattr(spark, "_sc", None)
    reason = _once(spark.session_id, _add_artifact, spark) if context is None else why_not(context)
    if reason:
        raise _tfos.UnsupportedError(f"tfos.jar: {reason}")


def why_not(sc: Any) -> Optional[str]:
    """Does what ``add_to`` does for the application of a SparkContext. Why that cannot be, or None."""
    return _once(sc.applicationId, _add_jar, sc)


def _once(key: str, add: Any, spark: Any) -> Optional[str]:
    with _lock:
        if key not in _reasons:
            _reasons[key] = add(spark) if os.path.exists(_place()) else _missing(_place())
        return _reasons[key]


def _place() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "tfos.jar")


def _missing(jar: str) -> str:
    return f"there is no {jar}: this package was built where no JDK or none of Spark's jars were to be found"


def _add_jar(sc: Any) -> Optional[str]:
    jar = _place()
    try:
        # The loader that all threads share: "ADD JAR" would make a second copy of the classes, for one thread only.
        own = loader = sc._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        while loader is not None and loader.getClass().getName() != _LOADER:
            loader = loader.getParent()
        if not _is_visible(sc, loader or own):
            if loader is None:
                return f"the driver's class loader takes no more jars; start Spark with spark.jars={jar}"
            loader.addURL(sc._jvm.java.io.File(jar).toURI().toURL())
        sc._jsc.addJar(pathlib.Path(jar).as_uri())  # a path would be taken for a URI in part
        version = sc._jvm.org.tfos.DataFrameFeeder.version()
    except Exception as error:  # whatever the JVM says, there may be another way
        return f"the driver's JVM cannot use {jar}: {str(error).splitlines()[0]}"
    return None if version == _tfos.VERSION else f"Spark has a tfos.jar of version {version}, this is {_tfos.VERSION}"


def _is_visible(sc: Any, loader: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        sc._jvm.java.lang.Class.forName("org.tfos.DataFrameFeeder", False, loader)
    except Py4JJavaError:
        return False
    return True


def _add_artifact(session: Any) -> Optional[str]:
    try:
        session.addArtifacts(pathlib.Path(_place()).as_uri())
    except Exception as error:
        return f"the server of Spark Connect does not take {_place()}: {str(error).splitlines()[0]}"
    return None
