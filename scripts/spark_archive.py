# SPDX-License-Identifier: Apache-2.0
"""Makes an archive of the classes that Spark loads (class data sharing), with which the tests' JVMs start in half the CPU time.

    python spark_archive.py FILE

The Spark is that of this Python. A JVM that the archive does not suit, since it is another JDK or has other jars, leaves it out.
"""

import os
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession, functions


def main():
    archive = sys.argv[1]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:+IgnoreUnrecognizedVMOptions"
    settings = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}.part", "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.createDataFrame([(i, str(i), [float(i)]) for i in range(100)], "a long, b string, c array<double>").repartition(3).cache()
    frame.groupBy("b").agg(functions.sum("a")).orderBy("b").collect()
    frame.join(frame.select("a"), "a").mapInArrow(lambda batches: batches, "a long, b string, c array<double>").count()
    frame.select(functions.udf(lambda value: value + 1, "long")("a")).rdd.map(len).sum()
    spark.stop()
    java = SparkContext._gateway.proc
    java.stdin.close()  # it ends, and writes the archive
    java.wait()
    os.replace(f"{archive}.part", archive)


if __name__ == "__main__":
    main()
