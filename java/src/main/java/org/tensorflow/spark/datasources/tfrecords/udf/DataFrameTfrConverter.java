// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.spark.datasources.tfrecords.udf;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.tfos.RowEncoder;

/** Functions for DataFrames that make a record of a struct: {@code df.select(getRowToTFRecordExampleUdf().apply(struct("*")))}. */
public final class DataFrameTfrConverter {
    private DataFrameTfrConverter() {}

    /** A struct to the bytes of an Example. */
    public static UserDefinedFunction getRowToTFRecordExampleUdf() {
        return RowEncoder.function("Example");
    }

    /** A struct to the bytes of a SequenceExample. */
    public static UserDefinedFunction getRowToTFRecordSequenceExampleUdf() {
        return RowEncoder.function("SequenceExample");
    }

    // What a program in Scala that applies the function itself is compiled to: to its compiler a method of Java's takes such arguments itself.

    public static Column getRowToTFRecordExampleUdf(Column struct) {
        return getRowToTFRecordExampleUdf().apply(struct);
    }

    public static Column getRowToTFRecordSequenceExampleUdf(Column struct) {
        return getRowToTFRecordSequenceExampleUdf().apply(struct);
    }
}
