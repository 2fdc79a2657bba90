// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The trainers' results for a DataFrame's rows, as a table. Each time that it is read its rows are fed. A plan that has shuffles of its own runs them
 * when Spark plans what reads the table, once.
 */
public final class InferenceRelation extends BaseRelation implements TableScan {
    private final SQLContext sqlContext;
    private final QueryExecution plan;
    private final StructType schema;
    private final PartitionInference task;
    private final String name;

    /**
     * Runs nothing.
     *
     * @param plan the execution of a DataFrame of the columns to feed; if {@code isKeeping}, of two structs: the columns to feed, and those that
     *     stand before the results
     * @param options a JSON object: address, cluster_id, key, queue, feed, timeout_ms, schema and results, which are texts as StructType.json()
     *     gives them, of the columns to feed and of the results, and ahead_rows
     * @param results the schema of the results, the same text
     * @param name what Spark's pages call the table
     */
    public InferenceRelation(SQLContext sqlContext, QueryExecution plan, boolean isKeeping, String options, String results, String name) {
        StructField[] columns = plan.analyzed().schema().fields();
        StructField[] fed = isKeeping ? ((StructType) columns[0].dataType()).fields() : columns;
        StructField[] kept = isKeeping ? ((StructType) columns[1].dataType()).fields() : new StructField[0];
        StructField[] given = ((StructType) DataType.fromJson(results)).fields();
        StructField[] all = new StructField[kept.length + given.length];
        System.arraycopy(kept, 0, all, 0, kept.length);
        System.arraycopy(given, 0, all, kept.length, given.length);
        this.sqlContext = sqlContext;
        this.plan = plan;
        this.name = name;
        schema = new StructType(all);
        task = new PartitionInference(
                options.getBytes(StandardCharsets.UTF_8), DataFrameFeeder.types(plan), fed.length, kept.length, given.length);
    }

    @Override
    public SQLContext sqlContext() {
        return sqlContext;
    }

    @Override
    public StructType schema() {
        return schema;
    }

    /** Rows are Spark's own. */
    @Override
    public boolean needConversion() {
        return false;
    }

    /** As many as are fed, which decides how Spark joins the results with another table. */
    @Override
    public long sizeInBytes() {
        scala.math.BigInt size = plan.optimizedPlan().stats().sizeInBytes();
        return size.isValidLong() ? size.longValue() : Long.MAX_VALUE;
    }

    @Override
    @SuppressWarnings("unchecked")
    public RDD<Row> buildScan() {
        return (RDD<Row>) (RDD<?>) plan.toRdd().toJavaRDD().mapPartitions(task).rdd();
    }

    @Override
    public String toString() {
        return name;
    }
}
