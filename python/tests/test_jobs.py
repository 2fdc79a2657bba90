# SPDX-License-Identifier: Apache-2.0
"""The end of Spark jobs, without Spark."""

import threading

from tensorflowonspark.jobs import SparkJob


class Spark:
    """Notes what is cancelled, and lets it end then."""

    def __init__(self):
        self.cancelled = []
        self.end = threading.Event()

    def new_thread(self, target):
        return threading.Thread(target=target)

    def name_jobs(self, group, description):
        pass

    def cancel_jobs(self, group):
        self.cancelled.append(group)
        self.end.set()


def test_a_job_that_ends_by_itself_is_not_cancelled():
    spark = Spark()
    job = SparkJob(spark, "job", lambda: spark.end.wait(60))
    job.start()
    threading.Timer(0.3, spark.end.set).start()
    job.end(60, patience=60)
    assert spark.cancelled == []


def test_a_job_that_does_not_end_is_cancelled():
    spark = Spark()
    job = SparkJob(spark, "job", lambda: spark.end.wait(60))
    job.start()
    job.end(60, patience=0.1)
    assert len(spark.cancelled) == 1
