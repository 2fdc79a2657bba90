// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import scala.Option;

/** Feeds a DataFrame's rows to a cluster, as a Spark job on the calling thread. */
public final class DataFrameFeeder {
    private DataFrameFeeder() {}

    /**
     * The version of the native library, which this loads.
     *
     * @throws TfosException where it cannot be loaded
     */
    public static String version() {
        NativeLibrary.load();
        return new String(Native.version(), StandardCharsets.UTF_8);
    }

    /**
     * Feeds each partition once, whatever Spark retries. The same plan may be fed again and again: its shuffles are kept.
     *
     * @param plan the DataFrame's execution
     * @param options a JSON object: address, cluster_id, key, queue, job (or none), feed, timeout_ms, and schema, the text that StructType.json() gives
     * @param name what Spark's pages call the query
     */
    public static void feed(QueryExecution plan, String options, String name) {
        PartitionFeeder task = new PartitionFeeder(options.getBytes(StandardCharsets.UTF_8), types(plan));
        // The plan runs inside the execution too: with adaptive execution toRdd() already runs its shuffles.
        SQLExecution.withNewExecutionId(
                plan,
                Option.apply(name),
                () -> {
                    plan.executedPlan().resetMetrics();
                    plan.toRdd().toJavaRDD().foreachPartition(task);
                    return null;
                });
    }

    static DataType[] types(QueryExecution plan) {
        StructField[] fields = plan.analyzed().schema().fields();
        DataType[] types = new DataType[fields.length];
        for (int i = 0; i < fields.length; i++) {
            types[i] = fields[i].dataType();
        }
        return types;
    }
}
