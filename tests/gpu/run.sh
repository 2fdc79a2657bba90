#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Allocation, sharing and collectives on a machine with one GPU, in less than ten minutes: with a Python that has tfos, pyspark and a TensorFlow
# that sees it.
# usage: run.sh [PYTHON]
set -euo pipefail
python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PYTHONPATH=$(cd "$(dirname "$0")" && pwd)${PYTHONPATH:+:$PYTHONPATH} # exchange_on_gpu.py, on the executors too
export PYTHONPATH
export TFOS_RUNTIME_DIR=$folder/locks SPARK_LOCAL_IP=127.0.0.1 TF_CPP_MIN_LOG_LEVEL=2
export PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python
tfos=$("$python" -c 'from tensorflowonspark.launch import node_executable; print(node_executable())')

echo "== what the machine has"
"$tfos" gpu
"$tfos" gpu --json | "$python" -c 'import json, sys; gpus = json.load(sys.stdin); assert gpus and not gpus[0]["fault"], gpus'

echo "== one process has it, another is told who"
"$python" - <<'PROGRAM'
import subprocess, sys
from tensorflowonspark import gpu_info
print("taken:", gpu_info.get_gpus(1))
other = "from tensorflowonspark import gpu_info; gpu_info.MAX_RETRIES = 0; gpu_info.get_gpus(1)"
refused = subprocess.run([sys.executable, "-c", other], stderr=subprocess.PIPE, text=True)
assert refused.returncode != 0 and "get_gpus" in refused.stderr, refused.stderr
print("refused:", refused.stderr.splitlines()[-1])
PROGRAM

echo "== two trainers at 20 %, fed by Spark, then one alone, with Keras; what they exchange on the GPU"
cat >"$folder/train.py" <<'PROGRAM'
import sys, time
from pyspark.sql import SparkSession
from tensorflowonspark import TFCluster


def train(args, ctx):
    import numpy as np, tensorflow as tf, time
    devices = tf.config.list_logical_devices("GPU")
    assert len(devices) == 1, devices
    if ctx.gpu_fraction:
        try:
            with tf.device("GPU:0"):
                tf.zeros([int(args["total"] * 0.3) // 4])
            raise AssertionError("more than the part could be had")
        except tf.errors.ResourceExhaustedError:
            print("30 % of the memory is refused at 20 %")
    model = tf.keras.Sequential([tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    rows = ctx.get_dataset(1024, dtypes=None)
    begin, count = time.monotonic(), 0
    for batch in rows:
        x = tf.cast(batch["x"], tf.float32)
        model.train_on_batch(x, tf.reduce_sum(x, 1))
        count += len(x)
    print(f"{count / (time.monotonic() - begin):,.0f} rows/s on {devices[0].name}")
    with tf.device("GPU:0"):
        block = np.ones(64 << 20, np.float32)
        tf.constant(block)
        begin = time.monotonic()
        for _ in range(8):
            tf.constant(block).numpy()[:1]
        print(f"to the GPU and back: {16 * block.nbytes / (time.monotonic() - begin) / 1e9:.1f} GB/s")
    from exchange_on_gpu import check_all
    from tensorflowonspark.collectives import of_process
    words = check_all(tf, of_process(tf), 64 << 20)
    # NCCL refuses two ranks on one GPU.
    assert ("has the same GPU" if ctx.num_workers > 1 else "by NCCL ") in words, words


if __name__ == "__main__":
    import json, subprocess
    from tensorflowonspark.launch import node_executable
    total = json.loads(subprocess.run([node_executable(), "gpu", "--json"], stdout=subprocess.PIPE).stdout)[0]["memory_total"]
    spark = SparkSession.builder.master("local-cluster[2,1,2048]").config("spark.executor.memory", "2g").getOrCreate()
    frame = spark.range(200_000).selectExpr("array_repeat(cast(id % 7 as float), 64) as x")
    for nodes, fraction in ((2, 0.2), (1, None)):
        with TFCluster.run(spark, train, {"total": total}, nodes, 0, input_mode=TFCluster.InputMode.SPARK, num_gpus=1, gpu_fraction=fraction) as cluster:
            print(subprocess.run([node_executable(), "gpu"], stdout=subprocess.PIPE, text=True).stdout)
            cluster.train(frame, 1)
    spark.stop()
PROGRAM
timeout 480 "$python" "$folder/train.py"

echo "== nothing is held any more"
"$tfos" gpu --json | "$python" -c 'import json, sys; assert not json.load(sys.stdin)[0]["holders"]'
echo "all well"
