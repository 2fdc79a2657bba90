# SPDX-License-Identifier: Apache-2.0
"""How a trainer ends: the outcome of the user's function, whatever that has done to its process and to its exceptions. Without Spark."""

import contextlib
import functools
import sys

import pytest
from pyspark import cloudpickle

from local_cluster import Cluster
from tensorflowonspark import _tfos, failures

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # trainers do not have this module


@pytest.fixture
def run(tmp_path):
    """Runs functions side by side, each in a trainer of its own; gives by their names the failures' texts, None where there was none."""
    with contextlib.ExitStack() as stack:
        def run_functions(*functions):
            clusters, outcomes = {}, {}
            for number, function in enumerate(functions):
                (tmp_path / str(number)).mkdir()
                clusters[getattr(function, "__name__", number)] = Cluster(tmp_path / str(number), stack, function)
            for name, cluster in clusters.items():
                try:
                    cluster.rendezvous.wait(_tfos.WORKED, 60_000)
                    outcomes[name] = None
                except _tfos.Error as error:
                    outcomes[name] = str(error)
            return outcomes
        yield run_functions


# -- streams


def replace_streams(folder, ctx):
    import sys

    class Log:
        def write(self, text):
            pass
    sys.stdout = sys.stderr = Log()
    print("written")


def unset_streams(folder, ctx):
    import sys
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None


def delete_streams(folder, ctx):
    import sys
    del sys.stdout, sys.stderr


def close_streams(folder, ctx):
    import sys
    sys.stdout.close()
    sys.stderr.close()


def detach_streams(folder, ctx):
    import sys
    sys.stdout.detach()
    sys.stderr.detach()


def close_descriptors(folder, ctx):
    import os
    os.close(1)
    os.close(2)


def redirect_descriptors(folder, ctx):
    import os
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def raise_from_flush(folder, ctx):
    import sys

    class Broken:
        def write(self, text):
            raise OSError("the disk is full")

        flush = write
    sys.stdout = sys.stderr = Broken()


def exit_in_atexit(folder, ctx):
    import atexit
    import sys
    atexit.register(sys.exit, 3)


ENDINGS = [replace_streams, unset_streams, delete_streams, close_streams, detach_streams, close_descriptors, redirect_descriptors,
           raise_from_flush]


def test_s75_success_stays_success(run):
    outcomes = run(*ENDINGS, exit_in_atexit)
    assert outcomes == dict.fromkeys(outcomes) and len(outcomes) == len(ENDINGS) + 1


def test_s75_failure_is_told_without_streams(run):
    def failing(function):
        def fail(folder, ctx):
            function(folder, ctx)
            raise LookupError("none of these words")
        fail.__name__ = function.__name__
        return fail
    outcomes = run(*map(failing, ENDINGS))
    assert {name for name, text in outcomes.items() if "LookupError: none of these words" not in text} == set()
    assert len(outcomes) == len(ENDINGS)


def become_daemon():
    import os
    import time

    first = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == first:  # else the last process may have ended before the first
        time.sleep(0.01)
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def test_s75_a_function_that_daemonises_is_waited_for(run, tmp_path):
    def work(folder, ctx):
        import os
        import time

        become_daemon()
        time.sleep(0.5)
        open(os.path.join(folder, "ran"), "w").close()

    def fail(folder, ctx):
        become_daemon()
        raise LookupError
    outcomes = run(work, fail)
    assert outcomes["work"] is None and (tmp_path / "0/ran").exists()
    assert "exit status 1" in outcomes["fail"]


# -- exceptions


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


class Misshapen(Exception):
    __module__ = None
    __notes__ = 3


@pytest.mark.parametrize("error, shown", [
    (LookupError("a \udc80 surrogate"), "LookupError: a \\udc80 surrogate"), (LookupError("a \0 null"), "LookupError: a \\x00 null"),
    (LookupError("\ud83d\ude00"), "LookupError: \\ud83d\\ude00"), (LookupError("x" * 10_000_000), "LookupError: xxx"),
    (LookupError("line\n" * 2_000_000), "LookupError: line"), (LookupError("\U0001f600" * 1_000_000), "LookupError: \U0001f600"),
    (LookupError("\0" * 1_000_000), "LookupError: \\x00"), (Unprintable(), "Unprintable"), (Misshapen(), "Misshapen"),
    (KeyError(Unprintable()), "KeyError"), (KeyboardInterrupt("\udc80"), "KeyboardInterrupt: \\udc80"),
], ids=["surrogate", "null", "surrogates", "10 MB", "10 MB of lines", "4 MB of 4-byte characters", "1 MB of nulls", "str raises",
        "members of wrong types", "repr raises", "interrupt"])
def test_s76_a_text_of_any_exception(error, shown):
    """Its name is among what the driver shows."""
    try:
        raise error
    except BaseException as raised:
        text = failures.explain(raised, failures.MESSAGE_LIMIT).encode()
        assert len(failures.text_of(raised).encode()) < 2000
    assert shown in text[-2000:].decode(errors="ignore") and b"\0" not in text


def test_s76_causes_that_go_in_circles():
    first, second = LookupError("first"), LookupError("second")
    first.__cause__, second.__cause__ = second, first
    assert "LookupError: first" in failures.explain(first, failures.MESSAGE_LIMIT)


def test_s76_the_driver_names_the_exception(run):
    def long(folder, ctx):
        raise LookupError("a \udc80 surrogate and a \0 null" * 400_000)

    def unprintable(folder, ctx):
        raise Unprintable

    def cause(folder, ctx):
        try:
            raise LookupError("y" * 10_000_000)
        except LookupError as error:
            raise RuntimeError("a \udc80") from error

    def leave(folder, ctx):
        sys.exit("a \udc80")

    def leave_unprintable(folder, ctx):
        sys.exit(Unprintable())
    outcomes = run(long, unprintable, cause, leave, leave_unprintable)
    assert "LookupError: a \\udc80 surrogate and a \\x00 null" in outcomes["long"]
    assert "Unprintable: <exception str() failed>" in outcomes["unprintable"]
    assert "LookupError: yyy" in outcomes["cause"] and "RuntimeError: a \\udc80" in outcomes["cause"]
    assert "exit status 1\na \\udc80" in outcomes["leave"]
    assert "exit status 1" in outcomes["leave_unprintable"]


# -- kinds of functions


class Record:
    """What a function leaves behind, to show that it has run."""

    def __init__(self, folder, ctx):
        open(f"{folder}/ran", "w").close()

    def method(self, folder, ctx):
        Record(folder, ctx)


class Callable:
    def __call__(self, folder, ctx):
        Record(folder, ctx)


async def coroutine(folder, ctx):
    import asyncio
    await asyncio.sleep(0)
    Record(folder, ctx)


class Awaitable:
    def __init__(self, folder, ctx):
        self.arguments = folder, ctx

    def __await__(self):
        return coroutine(*self.arguments).__await__()


def with_three(extra, folder, ctx):
    Record(folder, ctx)


def test_s90_functions_of_all_kinds_run(run, tmp_path):
    kinds = [Record, object.__new__(Record).method, Callable(), functools.partial(with_three, 1), coroutine, functools.partial(coroutine),
             lambda folder, ctx: coroutine(folder, ctx), Awaitable]
    assert set(run(*kinds).values()) == {None}
    assert [number for number in range(len(kinds)) if not (tmp_path / str(number) / "ran").exists()] == []


def test_s90_what_is_only_returned(run):
    async def fail(folder, ctx):
        raise LookupError("in vain")

    def generate(folder, ctx):
        yield Record(folder, ctx)

    def return_generator(folder, ctx):
        return generate(folder, ctx)
    outcomes = run(fail, return_generator)
    assert "LookupError: in vain" in outcomes["fail"]
    assert "TypeError: map_fun has returned a generator" in outcomes["return_generator"]


# -- modules


def test_s93_a_module_that_lies_beside_the_driver_s_program(run, tmp_path, monkeypatch):
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/beside_the_driver.py").write_text("def work(folder, ctx):\n    pass\n")
    with monkeypatch.context() as patch:  # trainers get what is on sys.path when they are started
        patch.syspath_prepend(str(tmp_path / "driver"))
        import beside_the_driver

    def imports(folder, ctx):
        try:
            import beside_the_driver.parts  # noqa: F401
        except ImportError as error:
            raise RuntimeError("cannot begin") from error

    def lacks_a_part(folder, ctx):
        import json.parts  # noqa: F401
    outcomes = run(beside_the_driver.work, imports, lacks_a_part)
    for words in (outcomes["work"], outcomes["imports"]):
        assert "no module 'beside_the_driver'" in words and "--py-files beside_the_driver.py" in words and "addPyFile" in words
    assert "another than the driver's" in outcomes["lacks_a_part"] and "--py-files" not in outcomes["lacks_a_part"]
