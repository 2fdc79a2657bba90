// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.QueryExecution;

/** A model's outputs for a DataFrame's rows, as a table. Each time that it is read the model is called. */
public final class TransformRelation extends ResultRelation {
    /**
     * Runs nothing.
     *
     * @param plan the execution of a DataFrame of the inputs' columns; if {@code isKeeping}, of two structs: these, and those that stand before the
     *     results
     * @param source the model
     * @param signature a JSON object: schema and results, texts as StructType.json() gives them, of the inputs' columns and of the results; inputs,
     *     in the order of the columns, with name, tensor, column and shape; outputs, in the order of the results, with name, tensor, column and rank
     * @param results the schema of the results, the same text
     * @param batchSize how many rows a call gets
     * @param name what Spark's pages call the table
     */
    public TransformRelation(
            SQLContext sqlContext,
            QueryExecution plan,
            boolean isKeeping,
            ModelSource source,
            String signature,
            String results,
            int batchSize,
            String name) {
        this(sqlContext, plan, new ResultColumns(plan, isKeeping, results), source, signature, batchSize, name);
    }

    private TransformRelation(
            SQLContext sqlContext, QueryExecution plan, ResultColumns columns, ModelSource source, String signature, int batchSize, String name) {
        super(
                sqlContext,
                plan,
                columns.schema(),
                new PartitionTransform(source, signature.getBytes(StandardCharsets.UTF_8), columns, batchSize),
                name);
    }
}
