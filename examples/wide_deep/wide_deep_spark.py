# SPDX-License-Identifier: Apache-2.0
"""Wide and deep learning (Cheng et al. 2016) on a table with strings, categories and numbers, of which Spark makes everything.

    spark-submit wide_deep_spark.py --cluster_size 2                        a made-up table
    spark-submit wide_deep_spark.py --cluster_size 2 --data adult.data      the census of UCI, as CSV

Spark finds the categories, and mean and deviation of numbers. The model has them inside: it takes the columns as they are, strings too, and so does the
SavedModel that it leaves.
"""

import argparse

NUMBERS = ("age", "education_num", "capital_gain", "hours_per_week")
CATEGORIES = ("workclass", "education", "marital_status", "occupation")
CROSSES = (("education", "occupation"), ("workclass", "marital_status"))
LABEL = "over_50k"
CENSUS = ("age int, workclass string, fnlwgt int, education string, education_num int, marital_status string, occupation string, relationship string, "
          "race string, gender string, capital_gain int, capital_loss int, hours_per_week int, native_country string, income string")


def main_fun(args, ctx):
    """Runs on each worker."""
    import keras

    from tensorflowonspark import compat
    from tensorflowonspark.keras import distribute

    keras.utils.set_random_seed(1)
    model = build_model(args.categories, args.moments)
    model.compile(keras.optimizers.Adam(args.rate), "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")])
    model = distribute(model)

    def prepare(row, weight):
        return {name: row[name][:, None] for name in (*NUMBERS, *CATEGORIES)}, row[LABEL][:, None], weight

    rows = ctx.get_dataset(args.batch_size, uneven="pad", shuffle_buffer=args.buffer_size, dtypes=dict.fromkeys((*NUMBERS, LABEL), "float32"))
    history = model.fit(rows.map(prepare), epochs=args.epochs, verbose=2 if ctx.job_name == "chief" else 0)
    export_dir = ctx.absolute_path(args.export_dir)
    if ctx.job_name == "chief":
        compat.export_saved_model(model, export_dir, True)
    return history.history["auc"][-1], export_dir


def build_model(categories, moments):
    """The wide part weighs each category and each pair of them; the deep part has embeddings, numbers and two layers."""
    import keras

    layers = keras.layers
    inputs = {name: keras.Input((1,), name=name) for name in NUMBERS}
    inputs.update({name: keras.Input((1,), name=name, dtype="string") for name in CATEGORIES})
    wide, deep = [], []
    for name in CATEGORIES:
        index = layers.StringLookup(vocabulary=categories[name])(inputs[name])
        size = len(categories[name]) + 1
        wide.append(layers.Flatten()(layers.Embedding(size, 1)(index)))
        deep.append(layers.Flatten()(layers.Embedding(size, 8)(index)))
    for names in CROSSES:
        index = layers.HashedCrossing(1000)(tuple(inputs[name] for name in names))
        wide.append(layers.Flatten()(layers.Embedding(1000, 1)(index)))
    for name in NUMBERS:
        mean, variance = moments[name]
        deep.append(layers.Normalization(mean=mean, variance=variance)(inputs[name]))
    x = layers.Concatenate()(deep)
    for units in (64, 32):
        x = layers.Dense(units, activation="relu")(x)
    logit = layers.Add()([layers.Dense(1)(x), *wide])
    return keras.Model(inputs, layers.Activation("sigmoid", name=LABEL)(logit))


def synthetic(spark, rows):
    """A table like the census; education, hours and occupation say something of the label."""
    def one_of(seed, *values):
        listed = ", ".join(f"'{value}'" for value in values)
        return f"element_at(array({listed}), cast(rand({seed}) * {len(values)} AS int) + 1)"

    table = spark.range(0, rows, numPartitions=4).selectExpr(
        "cast(17 + rand(1) * 60 AS int) AS age", f"{one_of(2, 'Private', 'Self-emp', 'State-gov')} AS workclass",
        f"{one_of(3, 'HS-grad', 'Bachelors', 'Masters', 'Doctorate')} AS education", f"{one_of(4, 'Married', 'Never-married', 'Divorced')} AS marital_status",
        f"{one_of(5, 'Sales', 'Craft-repair', 'Exec-managerial', 'Tech-support')} AS occupation", "cast(rand(6) * 1000 AS int) AS capital_gain",
        "cast(20 + rand(7) * 40 AS int) AS hours_per_week", "rand(8) AS luck",
    )
    table = table.selectExpr("*", "case education when 'HS-grad' then 9 when 'Bachelors' then 13 when 'Masters' then 14 else 16 end AS education_num")
    score = "education_num / 16 + hours_per_week / 60 + if(occupation = 'Exec-managerial', 0.5, 0) + luck / 4"
    return table.selectExpr("*", f"cast({score} > 1.8 AS int) AS {LABEL}")


def read(spark, args):
    """The columns that the model takes, and the label, 0 or 1."""
    if args.data:
        table = spark.read.csv(args.data, schema=CENSUS, ignoreLeadingWhiteSpace=True, ignoreTrailingWhiteSpace=True)
        table = table.selectExpr("*", f"cast(income LIKE '>50K%' AS int) AS {LABEL}").na.drop()
    else:
        table = synthetic(spark, args.synthetic_rows)
    return table.select(*NUMBERS, *CATEGORIES, LABEL).cache()


def describe(table):
    """The values of each category, and mean and variance of each number."""
    categories = {name: sorted(row[0] for row in table.select(name).distinct().collect()) for name in CATEGORIES}
    found = table.selectExpr(*(f"{what}({name}) AS {what}_{name}" for name in NUMBERS for what in ("avg", "var_pop"))).first()
    return categories, {name: (found[f"avg_{name}"], found[f"var_pop_{name}"]) for name in NUMBERS}


def main():
    from pyspark.sql import SparkSession

    from tensorflowonspark import TFCluster
    from tensorflowonspark.pipeline import TFModel

    spark = SparkSession.builder.appName("wide_deep").getOrCreate()
    sc = spark.sparkContext
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--buffer_size", help="rows among which to shuffle", type=int, default=10000)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--data", help="adult.data, local or on HDFS; without it a table is made up")
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--export_dir", help="where the SavedModel goes, in a folder that all executors see", default="wide_deep_export")
    parser.add_argument("--rate", help="learning rate", type=float, default=3e-3)
    parser.add_argument("--synthetic_rows", help="how many are made up", type=int, default=20000)
    args = parser.parse_args()

    table = read(spark, args)
    training, test = table.randomSplit([0.8, 0.2], seed=1)
    args.categories, args.moments = describe(training)
    cluster = TFCluster.run(sc, main_fun, args, args.cluster_size, input_mode=TFCluster.InputMode.SPARK, master_node="chief")
    cluster.train(training, args.epochs)
    cluster.shutdown()
    auc, export_dir = cluster.results()[0]
    print(f"AUC in training: {auc:.3f}")

    model = TFModel(args).setExportDir(export_dir).setOutputMapping({"output_0": "score"}).setKeep([LABEL])
    inputs = [f"array({name}) AS {name}" for name in CATEGORIES] + [f"array(cast({name} AS float)) AS {name}" for name in NUMBERS]
    answers = model.transform(test.selectExpr(LABEL, *inputs))
    right = answers.where(f"(score[0] > 0.5) = ({LABEL} = 1)").count()
    print(f"accuracy of the test: {right / test.count():.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
