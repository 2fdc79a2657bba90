// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Serializable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The columns of a plan whose rows get results: those that are fed, those that are kept beside the results, and those of the results. */
final class ResultColumns implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Of the plan's own columns. */
    final DataType[] types;

    final int fedCount;

    /** 0: the plan's columns are those to feed; else they are two structs, the columns to feed and those to keep. */
    final int keptCount;

    final int resultCount;
    private final StructType schema;

    /**
     * @param isKeeping whether the plan has two structs: the columns to feed, and those that stand before the results
     * @param results the schema of the results, as StructType.json() gives it
     */
    ResultColumns(QueryExecution plan, boolean isKeeping, String results) {
        StructField[] columns = plan.analyzed().schema().fields();
        StructField[] kept = isKeeping ? ((StructType) columns[1].dataType()).fields() : new StructField[0];
        StructField[] given = ((StructType) DataType.fromJson(results)).fields();
        StructField[] all = new StructField[kept.length + given.length];
        System.arraycopy(kept, 0, all, 0, kept.length);
        System.arraycopy(given, 0, all, kept.length, given.length);
        types = DataFrameFeeder.types(plan);
        fedCount = isKeeping ? ((StructType) columns[0].dataType()).fields().length : columns.length;
        keptCount = kept.length;
        resultCount = given.length;
        schema = new StructType(all);
    }

    /** Of the kept columns and the results. */
    StructType schema() {
        return schema;
    }
}
