// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/**
 * A batch of rows in native memory, as a struct ArrowArray (the Arrow C data interface), for Spark to read in place. It is one thread's at
 * a time.
 *
 * <p>Native code fills the struct at {@link #address}; {@link #columns} shows its columns. The memory goes back when the batch is closed, or all
 * of its columns are, as Spark 4 does with a batch that it is done with. Nothing that points into it may be used after that: a row's strings and
 * arrays are copied by whoever keeps them.
 */
public final class NativeBatch implements AutoCloseable {
    private static final long SIZE = 80;
    private static final long RELEASE = 64;

    private long address;
    private int openColumns;

    public NativeBatch() {
        NativeLibrary.load();
        address = Platform.allocateMemory(SIZE);
        Platform.setMemory(address, (byte) 0, SIZE);
    }

    /** Of the struct, all zero at first; 0 once it is closed. */
    public long address() {
        return address;
    }

    /** Rows. */
    public int rowCount() {
        return Math.toIntExact(NativeColumnVector.length(address));
    }

    /**
     * The columns of a batch that has been filled.
     *
     * @param type Spark's types of the columns
     * @param schema of the struct array
     * @throws TfosException names a column whose type in Spark is not that of its memory
     */
    public ColumnVector[] columns(StructType type, NativeSchema schema) {
        StructField[] fields = type.fields();
        if (!schema.format().equals("+s") || schema.childCount() != fields.length) {
            throw new TfosException("InvalidError: java: a batch of " + fields.length + " columns is none of the type " + schema.typeName());
        }
        ColumnVector[] columns = new ColumnVector[fields.length];
        for (int i = 0; i < fields.length; i++) {
            columns[i] = new NativeColumnVector(
                    fields[i].dataType(), schema.child(i), NativeColumnVector.child(address, i), NativeColumnVector.offset(address), this);
        }
        openColumns = fields.length;
        return columns;
    }

    /** A column is no longer needed. */
    void columnClosed() {
        openColumns--;
        if (openColumns == 0) {
            close();
        }
    }

    @Override
    public void close() {
        if (address == 0) {
            return;
        }
        if (Platform.getLong(null, address + RELEASE) != 0) {
            ArrowNative.releaseArray(address);
        }
        Platform.freeMemory(address);
        address = 0;
    }
}
