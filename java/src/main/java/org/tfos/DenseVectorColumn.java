// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A column of arrays of doubles as one of MLlib's vectors, which are stored as a struct: type, size, indices, values. All are dense ones. */
final class DenseVectorColumn extends ColumnVector {
    private static final byte DENSE = 1;

    private final ColumnVector values;
    private final ColumnVector[] children;

    /**
     * @param type the VectorUDT
     * @param values closed with this
     */
    DenseVectorColumn(DataType type, ColumnVector values, int rowCount) {
        super(type);
        this.values = values;
        StructField[] fields = ((StructType) ((UserDefinedType<?>) type).sqlType()).fields();
        ConstantColumnVector kind = new ConstantColumnVector(rowCount, fields[0].dataType());
        kind.setNotNull();
        kind.setByte(DENSE);
        ConstantColumnVector size = new ConstantColumnVector(rowCount, fields[1].dataType());
        size.setNull();
        ConstantColumnVector indices = new ConstantColumnVector(rowCount, fields[2].dataType());
        indices.setNull();
        children = new ColumnVector[] {kind, size, indices, values};
    }

    @Override
    public void close() {
        values.close();
    }

    @Override
    public boolean hasNull() {
        return values.hasNull();
    }

    @Override
    public int numNulls() {
        return values.numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
        return values.isNullAt(row);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }

    // ---- a struct is nothing else

    private static UnsupportedOperationException isStruct() {
        return new UnsupportedOperationException("a vector is a struct");
    }

    @Override
    public boolean getBoolean(int row) {
        throw isStruct();
    }

    @Override
    public byte getByte(int row) {
        throw isStruct();
    }

    @Override
    public short getShort(int row) {
        throw isStruct();
    }

    @Override
    public int getInt(int row) {
        throw isStruct();
    }

    @Override
    public long getLong(int row) {
        throw isStruct();
    }

    @Override
    public float getFloat(int row) {
        throw isStruct();
    }

    @Override
    public double getDouble(int row) {
        throw isStruct();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw isStruct();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw isStruct();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw isStruct();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw isStruct();
    }

    @Override
    public byte[] getBinary(int row) {
        throw isStruct();
    }
}
