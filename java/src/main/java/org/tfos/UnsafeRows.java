// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Makes Spark's rows of a schema what the native library reads. One thread. */
final class UnsafeRows {
    private final DenseVectors vectors; // null where there are none
    private final UnsafeProjection projection;

    UnsafeRows(StructType schema) {
        vectors = DenseVectors.of(schema);
        projection = UnsafeProjection.create(RecordColumns.stored(schema));
    }

    /** The row itself, or one that lives until the next call. */
    UnsafeRow of(InternalRow row) {
        if (vectors != null) {
            return projection.apply(vectors.replace(row));
        }
        return row instanceof UnsafeRow ? (UnsafeRow) row : projection.apply(row);
    }
}
