# SPDX-License-Identifier: Apache-2.0
"""The commands in the examples' READMEs, as typed but for less data, in one Spark application of three executors."""

import itertools
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from conftest import make_context
from mnist_data import first_digits
from model_server import serving

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BRIEF = ["--epochs", "1", "--batch_size", "32"]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder in which all are run, with MNIST's first digits as idx files."""
    folder = tmp_path_factory.mktemp("examples")
    first_digits(folder / "idx")
    return folder


@pytest.fixture(scope="module")
def run(place):
    """Runs commands of a README: run(folder, {program: [more arguments]}). The data are there already."""
    import pyspark
    from pyspark.sql import SparkSession

    context = make_context("local-cluster[3,1,1024]")
    system = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    system.setWorkingDirectory(context._jvm.org.apache.hadoop.fs.Path(str(place)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFOS_PRELOAD", "tensorflow")  # trainers begin sooner
        patch.chdir(place)
        shared = type("SharedContext", (type(context),), {"__new__": lambda cls, conf=None: context})
        patch.setattr(pyspark, "SparkContext", shared)
        patch.setattr(type(context), "stop", lambda self: None)
        patch.setattr(SparkSession, "stop", lambda self: None)

        def run_all(folder, more):
            for path, arguments in commands(folder):
                patch.setattr(sys, "argv", [path.name, *arguments, *more[path.name]])
                patch.syspath_prepend(str(path.parent))
                runpy.run_path(str(path), run_name="__main__")

        run_all("mnist", {"mnist_data_setup.py": ["--data", str(place / "idx")]})
        yield run_all
    context.stop()


def commands(folder):
    """The programs that the README's shell blocks run by spark-submit, with their arguments. Those of MNIST are typed in one folder."""
    start = EXAMPLES / folder.split("/")[0]
    for block in re.findall(r"```sh\n(.*?)```", (EXAMPLES / folder / "README.md").read_text(), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[:1] == ["spark-submit"]:
                yield start / words[1], words[2:]


def lines_in(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("part-*"))).splitlines()


def saved_model_cli(line):
    """What the command prints, in the folder of the models."""
    command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", *shlex.split(line)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def type_lines(place, text):
    """What a shell prints that runs the text in the folder of the data, where ``python`` is this one and runs the examples' programs."""
    programs = re.sub(r"\bpython \.\./utils/(?=\w+\.py)", f"{sys.executable} {EXAMPLES}/utils/", text)
    return subprocess.run(["bash", "-euo", "pipefail", "-c", programs], cwd=place, check=True, stdout=subprocess.PIPE, text=True).stdout


def block(path, language, word):
    """The first block of code in that language that has the word."""
    return next(found for found in re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL) if word in found)


def ask_the_server(place):
    """The requests of docs/serving.md, typed in a shell and sent by its Python function."""
    page, names = EXAMPLES.parent / "docs" / "serving.md", {}
    with serving("mnist", str(place / "mnist_export")) as address:
        status, metadata, answer = map(json.loads, type_lines(place, block(page, "sh", "curl").replace("localhost:8501", address)).splitlines())
        assert status["model_version_status"][0]["state"] == "AVAILABLE" and "image" in metadata["metadata"]["signature_def"]
        exec(block(page, "python", "urlopen").replace("localhost:8501", address), names)
        pixels = lines_in(place / "data" / "mnist" / "csv" / "test")[0].split(",")[1:]
        answered = names["predict"](np.array(pixels, "float32").reshape(1, 28, 28, 1) / 255)
        assert len(answered[0]) == 10
        np.testing.assert_allclose(answered, answer["predictions"], atol=1e-3)


def test_mnist_with_keras(run, place):
    training = dict.fromkeys(("mnist_spark.py", "mnist_tf.py", "mnist_tf_ds.py", "mnist_pipeline.py"), BRIEF)
    run("mnist/keras", {**training, "mnist_inference.py": [], "mnist_spark_inference.py": []})
    assert (place / "mnist_model" / "weights-0001.weights.h5").is_file()
    assert any("events.out.tfevents" in path.name for path in (place / "mnist_model").rglob("*"))
    answers = {tuple(map(int, line.split())) for line in lines_in(place / "predictions")}
    assert len(lines_in(place / "predictions")) == 200 and {label for label, _ in answers} == set(range(10))
    assert sorted(lines_in(place / "predictions")) == sorted(lines_in(place / "fed_predictions"))
    rows = list(map(json.loads, lines_in(place / "json_predictions")))
    assert sorted(f"{row['label']} {row['argmax']}" for row in rows) == sorted(lines_in(place / "predictions"))
    assert all(len(row["prediction"]) == 10 for row in rows)
    assert sum(row["label"] == row["argmax"] for row in rows) > 100
    np.save(place / "image.npy", np.zeros((1, 28, 28, 1), "float32"))
    shown, ran = map(saved_model_cli, re.findall(r"^saved_model_cli (.*)", (EXAMPLES.parent / "docs" / "serving.md").read_text(), re.MULTILINE))
    assert "inputs['image']" in shown and "outputs['output_0']" in shown
    assert "Result for output key output_0" in ran
    ask_the_server(place)


@pytest.mark.timeout(1500)
def test_mnist_as_in_tensorflow_1(run, place):
    for folder in ("mnist_model", "mnist_export", "predictions"):  # of the programs for Keras
        shutil.rmtree(place / folder, ignore_errors=True)
    (place / "stream").mkdir()
    digits = [line.split(",", 1) for line in lines_in(place / "data" / "mnist" / "csv" / "train")]
    ended = threading.Event()

    def move_files():
        for number in itertools.count():  # Spark takes those that appear after the stream has begun
            (place / "moved").write_text("".join(f"{label}|{pixels}\n" for label, pixels in digits[:100]))
            os.rename(place / "moved", place / "stream" / str(number))
            if ended.wait(2):
                break

    mover = threading.Thread(target=move_files)
    mover.start()
    try:
        small = ["--batch_size", "20"]
        run("mnist/v1", dict.fromkeys((f"mnist_v1_{name}.py" for name in ("spark", "tf", "streaming", "pipeline")), small))
    finally:
        ended.set()
        mover.join()
    for model in ("mnist_model", "mnist_tf_model", "mnist_stream_model"):
        assert (place / model / "checkpoint").is_file(), model
    assert len(lines_in(place / "tf_predictions")) == 200
    assert len([line for line in lines_in(place / "predictions") if re.search(r"Label: \d, Prediction: \d$", line)]) == 200
    assert (place / "mnist_export" / "saved_model.pb").is_file()
    by_signature, by_checkpoint, features = (lines_in(place / name) for name in ("signature_predictions", "checkpoint_predictions", "direct_features"))
    assert len(by_signature) == 200 and sorted(by_signature) == sorted(by_checkpoint)
    assert sum(row["label"] == row["predictions"] for row in map(json.loads, by_signature)) > 100
    assert {len(json.loads(line)["features"]) for line in features} == {128}
    printed = type_lines(place, "\n".join(re.findall(r"```sh\n(.*?)```", (EXAMPLES / "utils" / "README.md").read_text(), re.DOTALL)))
    image, *operations = printed.splitlines()
    assert np.array(json.loads(image)).shape == (28, 28, 1) and "prediction\tArgMax" in operations
    assert "outputs['digit']" in saved_model_cli("show --dir checkpoint_export --tag_set serve --signature_def serving_default")


def test_other_programs(run, place, capfd):
    for folder in ("resnet", "segmentation", "wide_deep", "criteo", "search"):
        run(folder, {f"{name}_spark.py": [] for name in ("resnet_cifar", "segmentation", "wide_deep", "criteo", "search")})
    printed = capfd.readouterr().out
    assert (place / "resnet_model" / "resnet.keras").is_file() and "eval_accuracy" in printed
    assert (place / "segmentation_export" / "saved_model.pb").is_file()
    first, *_, last = map(float, re.search(r"accuracy of each epoch: (.*)\n", printed).group(1).split(", "))
    assert last > first
    assert float(re.search(r"AUC of the validation, each epoch: .*, (0\.\d+)\n", printed).group(1)) > 0.6
    clicks = [tuple(map(float, line.split())) for line in lines_in(place / "criteo_predictions")]
    assert len(clicks) == 500 and {label for label, _ in clicks} == {0, 1} and all(0 < click < 1 for _, click in clicks)
    assert float(re.search(r"accuracy of the test: (0\.\d+)", printed).group(1)) > 0.8
    assert float(re.search(r"^(\d\.\d+)  \{'rate': ", printed, re.MULTILINE).group(1)) > 0.5


def test_notebook(tmp_path):
    """Every cell runs, and the last says how good the predictions are."""
    command = [str(Path(sys.executable).with_name("jupyter-execute")), "--output", str(tmp_path / "executed"), "mnist.ipynb"]
    result = subprocess.run(command, cwd=EXAMPLES / "notebook", capture_output=True, text=True, timeout=580)
    assert result.returncode == 0, result.stdout + result.stderr
    text = (tmp_path / "executed.ipynb").read_text()
    assert float(re.search(r"accuracy of the test: (0\.\d+)", text).group(1)) > 0.8
    assert "TensorBoard: http://" in text and "image/png" in text
