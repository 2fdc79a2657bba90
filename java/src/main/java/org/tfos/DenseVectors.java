// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Makes arrays of doubles of the columns of a row that are MLlib's vectors, sparse or dense. One thread. */
final class DenseVectors {
    private static final int KIND = 0; // fields of a vector
    private static final int SIZE = 1;
    private static final int INDICES = 2;
    private static final int VALUES = 3;
    private static final byte SPARSE = 0;

    private final DataType[] types;
    private final boolean[] isVector;
    private final GenericInternalRow replaced;

    private DenseVectors(DataType[] types, boolean[] isVector) {
        this.types = types;
        this.isVector = isVector;
        replaced = new GenericInternalRow(types.length);
    }

    /** Null when no column is a vector. */
    static DenseVectors of(StructType schema) {
        StructField[] fields = schema.fields();
        DataType[] types = new DataType[fields.length];
        boolean[] isVector = new boolean[fields.length];
        boolean isAny = false;
        for (int i = 0; i < fields.length; i++) {
            types[i] = fields[i].dataType();
            isVector[i] = RecordColumns.isVector(types[i]);
            isAny |= isVector[i];
        }
        return isAny ? new DenseVectors(types, isVector) : null;
    }

    /** A row that lives until the next call. */
    InternalRow replace(InternalRow row) {
        for (int i = 0; i < types.length; i++) {
            if (row.isNullAt(i)) {
                replaced.setNullAt(i);
            } else if (isVector[i]) {
                replaced.update(i, UnsafeArrayData.fromPrimitiveArray(dense(row.getStruct(i, VALUES + 1))));
            } else {
                replaced.update(i, row.get(i, types[i]));
            }
        }
        return replaced;
    }

    private static double[] dense(InternalRow vector) {
        double[] values = vector.getArray(VALUES).toDoubleArray();
        if (vector.getByte(KIND) != SPARSE) {
            return values;
        }
        double[] all = new double[vector.getInt(SIZE)];
        int[] indices = vector.getArray(INDICES).toIntArray();
        for (int i = 0; i < indices.length; i++) {
            all[indices[i]] = values[i];
        }
        return all;
    }
}
