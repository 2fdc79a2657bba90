# SPDX-License-Identifier: Apache-2.0
"""Keras 3 in step: what several processes train is what one trains on all their rows."""

import os
import signal

import numpy as np
import pytest

keras = pytest.importorskip("keras", "3.0")

import keras_async_cases  # noqa: E402
import keras_cases  # noqa: E402
from keras_cases import CASES  # noqa: E402
from ranks import Ranks, good  # noqa: E402

SOME = ["momentum_l2", "adam", "embedding_adam", "accumulation", "batch_normalization"]
UNEVEN = ["adam", "embedding_adam", "accumulation", "eager", "steps_per_execution", "sum", "weight_mean", "loss_scale", "batch_normalization"]
SOME_UNEVEN = ["adam", "embedding_adam", "batch_normalization"]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    with Ranks(tmp_path_factory.mktemp("ranks"), 4) as started:
        yield started


@pytest.fixture(scope="module")
def of_one_process(ranks):
    """Gives what one process makes of the cases named, each trained once."""
    results = {}

    def train(names):
        new = [name for name in names if name not in results]
        results.update(good(ranks.run(keras_cases.fit, 0, names=new))[0] if new else {})
        return results

    return train


def check(single, results, names, tolerance=1e-6):
    """The weights and the metrics of all ranks are those of one process, and the ranks' weights do not differ in a bit."""
    wrong = []
    for name in names:
        for rank, result in enumerate(results):
            difference = np.abs(single[name]["weights"] - result[name]["weights"]).max()
            if not difference <= tolerance or single[name]["iterations"] != result[name]["iterations"]:
                wrong.append((name, rank, difference, single[name]["iterations"], result[name]["iterations"]))
            if (results[0][name]["weights"] != result[name]["weights"]).any():
                wrong.append((name, rank, "differs from rank 0"))
            for key, values in single[name]["history"].items():
                if not np.allclose(values, result[name]["history"][key], rtol=1e-5, atol=1e-5):
                    wrong.append((name, rank, key, values, result[name]["history"][key]))
    assert not wrong, wrong


@pytest.mark.parametrize("names", [SOME, pytest.param([name for name in CASES if name not in SOME], marks=pytest.mark.long, id="others")])
def test_two_ranks_train_what_one_process_trains(ranks, of_one_process, names):
    check(of_one_process(names), good(ranks.run(keras_cases.fit, 2, names=names)), names)


@pytest.mark.long
@pytest.mark.parametrize("size, names", [(1, ["adam"]), (3, SOME), (4, ["adam", "embedding_adam"])])
def test_other_numbers_of_ranks(ranks, of_one_process, size, names):
    check(of_one_process(names), good(ranks.run(keras_cases.fit, size, names=names)), names)


@pytest.mark.long
def test_sample_weights_and_validation(ranks):
    names = ["adam", "sum", "weight_mean"]
    arguments = {"names": names, "weighted": True, "validation": True}
    check(good(ranks.run(keras_cases.fit, 0, **arguments))[0], good(ranks.run(keras_cases.fit, 2, **arguments)), names)


@pytest.mark.long
def test_parts_of_unequal_length(ranks):
    """Also a rank without rows, and padding."""
    one = good(ranks.run(keras_cases.fit_uneven, 0, names=UNEVEN))[0]
    check(one, good(ranks.run(keras_cases.fit_uneven, 3, names=UNEVEN)), one)
    expected = {(name, "padded"): one[name, "short"] for name in SOME_UNEVEN}
    check(expected, good(ranks.run(keras_cases.fit_uneven, 3, names=SOME_UNEVEN, endings=("padded",))), expected)


def test_weights_of_classes(ranks):
    """Beside the weights that padding has."""
    check(good(ranks.run(keras_cases.fit_classes, 0))[0], good(ranks.run(keras_cases.fit_classes, 3)), ["classes"])


@pytest.mark.long
def test_accumulated_gradients_are_exchanged_once(ranks):
    """Every fourth step."""
    for each, accumulated in good(ranks.run(keras_cases.count_bytes, 2, names=["sgd", "accumulation_clipped"])):
        assert each * 0.2 < accumulated < each * 0.3


@pytest.mark.long
@pytest.mark.parametrize("ending", ["short", "padded"])
def test_named_inputs_and_outputs(ranks, ending):
    check(good(ranks.run(keras_cases.branched, 0))[0], good(ranks.run(keras_cases.branched, 3, ending=ending)), ["branched"], 1e-5)


def test_one_batch_at_a_time(ranks):
    expected = good(ranks.run(keras_cases.train_batches, 0))[0]
    for weights in good(ranks.run(keras_cases.train_batches, 2)):
        assert np.abs(weights - expected).max() < 2e-6


def test_ragged_and_sparse_batches(ranks):
    counts, rows, ragged, sparse, weights, nothing = good(ranks.run(keras_cases.odd_data, 0))[0]
    assert counts == [[3, 3, 3], [0, 0, 0], [0, 0, 0]] and rows == 2
    assert (ragged, sparse, weights, nothing) == ([[1, 2], [3]], [[1, 0], [0, 3]], [1.0, 0.0], None)


def test_epochs_that_are_padded_on_all_ranks(ranks):
    """Their padding is read to its end, and no step is made of it."""
    expected = good(ranks.run(keras_cases.fit_padded_epochs, 0))[0][0]
    for weights, steps in good(ranks.run(keras_cases.fit_padded_epochs, 2)):
        assert steps == (3, 1, 3) and np.abs(weights - expected).max() < 2e-6


def test_runs_do_not_differ(ranks):
    results = good(ranks.run(keras_cases.fit_twice, 2, name="adam"))
    assert len({run for result in results for run in result}) == 1


def test_custom_loop(ranks):
    expected = good(ranks.run(keras_cases.loop, 0))[0]
    for result in good(ranks.run(keras_cases.loop, 2)):
        assert np.abs(result - expected).max() < 1e-6


def test_evaluate_and_predict(ranks):
    expected = good(ranks.run(keras_cases.judge, 0))[0][0]
    results = good(ranks.run(keras_cases.judge, 3))
    for figures, _ in results:
        assert figures == pytest.approx(expected, abs=1e-5)
    assert tuple(count for _, count in results) == keras_cases.ROWS


def test_dropout_differs_by_rank(ranks):
    first, again = (good(ranks.run(keras_cases.draw_dropout, 2)) for _ in range(2))
    assert len({mask for masks in first for mask in masks}) == 4
    assert first == again


def test_statistics_are_averaged(ranks):
    results = good(ranks.run(keras_cases.average_statistics, 2))
    expected = 0.5 * np.mean([mean for _, mean in results], 0)
    for statistics, _ in results:
        assert np.allclose(statistics, expected, atol=1e-6)


def test_model_is_built_from_the_data(ranks):
    (first, optimizer), (second, _) = good(ranks.run(keras_cases.unbuilt, 2))
    assert (first == second).all() and optimizer == "Adam"


def test_callbacks_that_write(ranks, tmp_path):
    """They act on the chief; training continues from its backup; its files load without the package."""
    results = good(ranks.run(keras_cases.write, 2, folder=str(tmp_path), epochs=4, stop_at=2))
    assert [begun for begun, _ in results] == [[0, 1]] * 2
    results = good(ranks.run(keras_cases.write, 2, folder=str(tmp_path), epochs=4))
    assert [begun for begun, _ in results] == [[2, 3]] * 2
    assert (results[0][1] == results[1][1]).all()
    assert sorted(os.listdir(tmp_path)) == ["0"]
    assert sorted(os.listdir(tmp_path / "0")) == ["1.keras", "2.keras", "3.keras", "4.keras", "backup", "board", "log.csv", "saved.keras"]
    model, optimizer, iterations, config, weights = good(ranks.run(keras_cases.load, 0, path=str(tmp_path / "0" / "saved.keras")))[0]
    assert model is keras.Sequential and optimizer is keras.optimizers.Adam and "tensorflowonspark" not in config
    assert (weights == results[0][1]).all() and iterations == 4 * -(-keras_cases.STEPS * keras_cases.BATCH // 2 // keras_cases.OWN)


def test_s20_all_workers_export_to_one_folder(ranks, tmp_path):
    """The chief's model is there, whole, and nothing of the others'."""
    for files, temporary, difference in good(ranks.run(keras_cases.export, 2, folder=str(tmp_path))):
        assert {"saved_model.pb", "variables"} <= set(files) and not [name for name in temporary if name.startswith("tfos-export-")]
        assert np.abs(difference).max() < 1e-5
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("where", ["batch", "epoch"])
def test_one_rank_stops(ranks, where):
    """All stop at the same step."""
    (batches, epochs, first), (others, more, second) = good(ranks.run(keras_cases.stop_early, 2, where=where))
    assert (batches, epochs) == (others, more) == ((3, 1) if where == "batch" else (keras_cases.STEPS * keras_cases.BATCH // 2 // keras_cases.OWN, 1))
    assert (first == second).all()


@pytest.mark.parametrize("kind, words", [
    ("shape", ["inner/kernel, float32 (20, 32) on rank 0", "inner/kernel, float32 (20, 33) on rank 1"]),
    ("dtype", ["weight 0 is", "float32 (20, 32)", "float64 (20, 32)"]),
    ("count", ["there are 4 weights", "6 (the first that not all have is", "kernel, float32 (3, 3)"]),
    ("optimizer", ["the optimizer's clipnorm is None", "1.0 on rank 1"]),
    ("steps", ["steps_per_epoch is 2", "3 on rank 1"]),
])
def test_models_that_differ(ranks, kind, words):
    for result in ranks.run(keras_cases.mismatched, 2, kind=kind):
        assert isinstance(result, RuntimeError) and result.args[0].startswith("ValueError: distribute: the workers do not train the same model: ")
        assert all(word in result.args[0] for word in words), result.args[0]


def test_what_distribute_refuses(ranks):
    found, has_xla = good(ranks.run(keras_cases.refused, 1))[0]
    assert not has_xla
    assert "call model.compile(...) first" in found["not compiled"]
    assert "takes a model of Keras 3, not int" in found["no model"]
    assert "outside of strategy.scope()" in found["strategy"]
    assert "a model of tf_keras" in found["tf_keras"]
    assert "already distributed, in another group or mode: build and compile it anew" in found["another group"]


@pytest.mark.long
@pytest.mark.parametrize("fit_for_ever", [keras_cases.fit_for_ever, keras_async_cases.train_for_ever])
def test_s46_a_killed_rank_is_named(tmp_path, fit_for_ever):
    with Ranks(tmp_path, 3) as own:
        good(own.run(keras_cases.fit, 3, names=["adam"]))
        count = own.begin(fit_for_ever, 3)
        pid = own.pid(1)
        assert not own.has_answered(0, 2)  # they are in fit
        os.kill(pid, signal.SIGKILL)
        results = own.results(count)
    assert isinstance(results[1], EOFError)
    for result in (results[0], results[2]):
        assert "AbortedError" in result.args[0] and "rank 1" in result.args[0], result.args[0]


# ---- asynchronously


@pytest.mark.long
@pytest.mark.parametrize("group", ["all", "tcp"])
def test_asynchronous_ranks_end_with_the_same_model(ranks, group):
    """Whatever their numbers of rows, one of which is 0."""
    results = good(ranks.run(keras_async_cases.train, 4, group=group))
    own = [-(-(end - begin) // keras_async_cases.BATCH) * 4 for begin, end in zip(keras_async_cases.PARTS, keras_async_cases.PARTS[1:])]
    assert [steps for steps, *_ in results] == own
    for _, weights, accuracy, _ in results:
        assert (weights == results[0][1]).all() and accuracy > 0.9, accuracy


def test_an_asynchronous_rank_ends_and_the_chief_saves(ranks, tmp_path):
    results = good(ranks.run(keras_async_cases.write, 2, folder=str(tmp_path)))
    assert [steps for steps, *_ in results] == [100, 3]
    assert sorted(os.listdir(tmp_path)) == ["0.keras", "saved.keras"]
    saved = keras.models.load_model(tmp_path / "saved.keras").get_weights()
    for _, first, second in results:
        assert (first == np.concatenate([weight.ravel() for weight in saved])).all()
        assert (second == results[0][2]).all() and (second != first).any()


def test_a_fast_rank_is_ahead_by_the_staleness_and_no_more(ranks, tmp_path):
    path = tmp_path / "marks"
    path.write_bytes(bytes(32))
    (was_released, first), (ahead, second) = good(ranks.run(keras_async_cases.keep_bound, 2, path=str(path), staleness=5, rounds=4))
    assert ahead == [5] * 4 and was_released == [True] * 4
    assert (first == second).all()


def test_what_asynchronous_training_refuses(ranks):
    found = good(ranks.run(keras_async_cases.refused, 1))[0]
    assert "mode must be 'sync' or 'async', not 'asynchronous'" in found["mode"]
    assert "staleness and every are of mode 'async'" in found["sync"]
    assert "every=8 must be at most staleness=4" in found["every"]
    assert "staleness must be an integer of 1 or more, not 0" in found["staleness"]
    for name in ("other mode", "sync mode"):
        assert "in another group or mode: build and compile it anew" in found[name]
    assert "call fit, or use mode 'sync'" in found["train_on_batch"]
    assert "steps_per_execution=100 must be at most staleness=64" in found["execution"]
    assert "the layer norm is synchronized: make it with synchronized=False" in found["synchronized"]
    assert "wide/kernel is of float64" in found["double"]
    assert "uneven='pad' of the dataset makes them: leave uneven out" in found["uneven"]
