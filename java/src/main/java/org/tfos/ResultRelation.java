// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;

/**
 * Results for a DataFrame's rows, as a table. Each time that it is read they are made anew. A plan that has shuffles of its own runs them when Spark
 * plans what reads the table, once.
 */
abstract class ResultRelation extends BaseRelation implements TableScan {
    private final SQLContext sqlContext;
    private final QueryExecution plan;
    private final StructType schema;
    private final FlatMapFunction<Iterator<InternalRow>, InternalRow> task;
    private final String name;

    /**
     * Runs nothing.
     *
     * @param task gives a row of results for each of a partition
     * @param name what Spark's pages call the table
     */
    ResultRelation(
            SQLContext sqlContext,
            QueryExecution plan,
            StructType schema,
            FlatMapFunction<Iterator<InternalRow>, InternalRow> task,
            String name) {
        this.sqlContext = sqlContext;
        this.plan = plan;
        this.schema = schema;
        this.task = task;
        this.name = name;
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
