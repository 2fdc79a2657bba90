# SPDX-License-Identifier: Apache-2.0
"""MNIST in TensorFlow 1's style from files that the workers read (InputMode.TENSORFLOW), with a SavedModel at the end.

    spark-submit mnist_v1_tf.py --cluster_size 3 --images_labels data/mnist/tfr/train
    spark-submit mnist_v1_tf.py --cluster_size 3 --images_labels data/mnist/tfr/train --sync_replicas
    spark-submit mnist_v1_tf.py --cluster_size 3 --images_labels data/mnist/csv2/train --format csv2
    spark-submit mnist_v1_tf.py --cluster_size 3 --images_labels data/mnist/tfr/test --mode inference

With ``--sync_replicas`` a step takes the mean of the workers' gradients (SyncReplicasOptimizer); else workers do not wait for each other. ``csv2`` has
lines ``label|pixel,pixel,...``; ``tfr`` is what mnist_data_setup.py writes, and that of TensorFlowOnSpark 1 and 2.
"""

import argparse

import mnist_v1_graph


def map_fun(args, ctx):
    """Runs on each node."""
    cluster, server = ctx.start_cluster_server(1, args.rdma)
    if ctx.job_name == "ps":
        server.join()
    with mnist_v1_graph.on_worker(cluster, ctx):
        run_steps(args, ctx, server)
    if args.mode == "train" and ctx.task_index == 0:
        mnist_v1_graph.export(ctx, args.model, args.export, {"serving_default": "prediction"})
    ctx.agree("done", True)  # a worker's session needs the others' servers


def run_steps(args, ctx, server):
    """Trains until the data or the steps end, or writes a line for each row."""
    import tensorflow as tf

    v1 = tf.compat.v1
    training = args.mode == "train"
    is_chief = ctx.task_index == 0
    is_in_step = training and args.sync_replicas
    network = mnist_v1_graph.build(*v1.data.make_one_shot_iterator(read(args, ctx)).get_next(), ctx.num_workers if is_in_step else 0)
    settings = {} if training else {"save_checkpoint_secs": None, "save_checkpoint_steps": None}
    hooks = [v1.train.StopAtStepHook(last_step=args.steps)] if training else []
    if is_in_step:
        hooks.append(network.optimizer.make_session_run_hook(is_chief))
    lines = []
    with v1.train.MonitoredTrainingSession(
        server.target, is_chief=is_chief, checkpoint_dir=ctx.absolute_path(args.model), hooks=hooks,
        stop_grace_period_secs=5,  # instead of 120, in which the queues of SyncReplicasOptimizer do not end either
        **settings
    ) as session:
        while not session.should_stop():
            if training:
                _, step, loss, accuracy = session.run([network.train, network.global_step, network.loss, network.accuracy])
                ctx.report(step=step, loss=loss, accuracy=accuracy)
            else:
                lines += [f"{label} {answer}\n" for label, answer in zip(*session.run([network.label, network.prediction]))]
    if not training:
        output = ctx.absolute_path(args.output)
        tf.io.gfile.makedirs(output)
        with tf.io.gfile.GFile(f"{output}/part-{ctx.task_index:05d}", "w") as file:
            file.write("".join(lines))


def read(args, ctx):
    """A dataset of batches of images and labels: this worker's part of the rows, once for each epoch, or as long as workers in step need some."""
    import tensorflow as tf

    def parse_record(record):
        features = {"image": tf.io.FixedLenFeature([784], tf.int64), "label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
        found = tf.io.parse_single_example(record, features)
        label = found["label"]
        return normal(found["image"], tf.where(tf.size(label) == 1, label[0], tf.argmax(label)))

    def parse_line(line):
        label, pixels = tf.unstack(tf.ensure_shape(tf.strings.split(line, "|"), [2]))
        return normal(tf.ensure_shape(tf.strings.to_number(tf.strings.split(pixels, ",")), [784]), tf.strings.to_number(label, tf.int64))

    def normal(image, label):
        return tf.cast(image, tf.float32) / 255, tf.one_hot(label, mnist_v1_graph.DIGITS)

    kind, parse = (tf.data.TFRecordDataset, parse_record) if args.format == "tfr" else (tf.data.TextLineDataset, parse_line)
    files = sorted(tf.io.gfile.glob(ctx.absolute_path(args.images_labels) + "/part-*"))
    rows = kind(files, num_parallel_reads=args.readers).shard(ctx.num_workers, ctx.task_index).map(parse)
    if args.mode == "train":
        rows = rows.shuffle(args.shuffle_size).repeat(None if args.sync_replicas else args.epochs)
    return rows.batch(args.batch_size)


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("mnist_v1_tf"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mnist_v1_graph.add_arguments(parser, int(sc.getConf().get("spark.executor.instances", "1")))
    parser.add_argument("--driver_ps_nodes", help="run the parameter servers beside the driver", action="store_true")
    parser.add_argument("--export", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--format", help="of the files", choices=["csv2", "tfr"], default="tfr")
    parser.add_argument("--images_labels", help="folder of the files", required=True)
    parser.add_argument("--num_ps", help="number of parameter servers", type=int, default=1)
    parser.add_argument("--shuffle_size", help="rows among which to shuffle", type=int, default=1000)
    parser.add_argument("--sync_replicas", help="train in step, for --steps steps, whatever --epochs says", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(mnist_v1_graph.__file__)
    cluster = TFCluster.run(sc, map_fun, args, args.cluster_size, args.num_ps, args.tensorboard, TFCluster.InputMode.TENSORFLOW,
                            driver_ps_nodes=args.driver_ps_nodes)
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()
