// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.spark.datasources.tfrecords.udf;

import org.apache.spark.sql.expressions.UserDefinedFunction;

/** What programs in Scala call that were compiled with the connector, whose DataFrameTfrConverter is an object of Scala's. */
public final class DataFrameTfrConverter$ {
    public static final DataFrameTfrConverter$ MODULE$ = new DataFrameTfrConverter$();

    private DataFrameTfrConverter$() {}

    public UserDefinedFunction getRowToTFRecordExampleUdf() {
        return DataFrameTfrConverter.getRowToTFRecordExampleUdf();
    }

    public UserDefinedFunction getRowToTFRecordSequenceExampleUdf() {
        return DataFrameTfrConverter.getRowToTFRecordSequenceExampleUdf();
    }
}
