// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.QueryExecution;

/** The trainers' results for a DataFrame's rows, as a table. Each time that it is read its rows are fed. */
public final class InferenceRelation extends ResultRelation {
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
        this(sqlContext, plan, new ResultColumns(plan, isKeeping, results), options, name);
    }

    private InferenceRelation(SQLContext sqlContext, QueryExecution plan, ResultColumns columns, String options, String name) {
        super(sqlContext, plan, columns.schema(), new PartitionInference(options.getBytes(StandardCharsets.UTF_8), columns), name);
    }
}
