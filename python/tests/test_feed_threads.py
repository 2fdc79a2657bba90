# SPDX-License-Identifier: Apache-2.0
"""One feed in several threads of a trainer, as generators of tf.data and Estimator's hooks use it. Without Spark."""



READ_IN_TWO = """
import threading
feed, rows, errors = link.open_feed(), [], []

def read():
    try:
        while True:
            some = feed.next_rows(1, False)
            if some is None:
                break
            rows.extend(some)
    except Exception as error:
        errors.append(error)

threads = [threading.Thread(target=read) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
save((sorted(rows), errors))
"""

ANSWER_FROM_ANOTHER = """
import queue, threading
feed, batches = link.open_feed(), queue.Queue()

def read():
    rows = []
    while rows is not None:
        try:
            rows = feed.next_rows(5, True)
        except Exception as error:
            batches.put(error)
            raise
        batches.put(rows)

threading.Thread(target=read).start()
while True:
    rows = batches.get()
    if rows is None:
        break
    if isinstance(rows, Exception):
        raise rows
    feed.put_results([("result", row) for row in rows])
"""

STOP_FROM_ANOTHER = """
import threading
feed = link.open_feed()
assert feed.next_rows(1, False) == [0]
rest = []
thread = threading.Thread(target=lambda: rest.append(feed.next_rows(1000, False)))
thread.start()
feed.terminate()
after = feed.next_rows(1, False)
thread.join()
save((after, feed.at_end))
"""


def test_each_row_goes_to_one_of_two_threads(start):
    cluster = start(READ_IN_TWO)
    assert cluster.feed(range(2000)) == 2000
    assert cluster.saved() == (list(range(2000)), [])


def test_one_thread_answers_while_another_reads(start):
    """The reader waits for the next partition when the last rows of this one are answered."""
    cluster = start(ANSWER_FROM_ANOTHER)
    for partition in range(3):
        assert cluster.results(range(33), partition) == [("result", row) for row in range(33)]
    cluster.end()


def test_a_thread_reads_after_it_has_stopped_another(start):
    cluster = start(STOP_FROM_ANOTHER)
    assert cluster.feed(range(2)) <= 2
    assert cluster.saved() == (None, True)
