// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of a {@link NativeBatch}, read in place. Spark's type and Arrow's format have to agree:
 * boolean b, byte c, short s, integer i, long l, float f, double g, date tdD, timestamp tsu:zone, timestamp_ntz tsu:, the intervals tiM and tDu,
 * decimal d:p,s, string u or U, binary z or Z, array +l, +L or +w:n, struct +s; a user-defined type is what it stores.
 *
 * <p>One class for all types, so that the calls of Spark's generated code have one target. Which method is called is Spark's to get right, as
 * with its own vectors.
 */
public final class NativeColumnVector extends ColumnVector {
    private static final long LENGTH = 0;
    private static final long NULL_COUNT = 8;
    private static final long OFFSET = 16;
    private static final long BUFFERS = 40;
    private static final long CHILDREN = 48;
    private static final int DECIMAL_SIZE = 16;

    private final long array;
    private final long first; // the index of row 0 in the buffers
    private final long validity; // of index 0; 0: there are no nulls
    private final long values; // of row 0; of offsets, strings and lists: the offsets
    private final long bytes; // of strings and binary
    private final boolean isWide; // offsets have 64 bits
    private final int listSize; // of lists of one size, else -1
    private final ColumnVector[] children;
    private NativeBatch batch; // of a column that is open and at the top

    /**
     * @param array the struct ArrowArray
     * @param shift the offset of the struct array that it is a field of
     * @param batch is notified of the end; null for a column within another
     */
    NativeColumnVector(DataType type, NativeSchema schema, long array, long shift, NativeBatch batch) {
        super(type);
        DataType stored = type instanceof UserDefinedType ? ((UserDefinedType<?>) type).sqlType() : type;
        String format = schema.format();
        if (!agrees(stored, format)) {
            throw new TfosException("UnsupportedError: java: column " + schema.name() + ": Spark's type " + type.catalogString()
                    + " cannot be read from Arrow's " + schema.typeName());
        }
        this.array = array;
        this.batch = batch;
        first = offset(array) + shift;
        validity = Platform.getLong(null, array + NULL_COUNT) == 0 ? 0 : buffer(array, 0);
        isWide = format.equals("U") || format.equals("Z") || format.equals("+L");
        listSize = format.startsWith("+w:") ? Integer.parseInt(format.substring(3)) : -1;
        bytes = isBytes(format) ? buffer(array, 2) : 0;
        values = format.equals("+s") || listSize >= 0 ? 0 : buffer(array, 1) + (format.equals("b") ? 0 : first * width(format));
        children = children(stored, schema);
    }

    private ColumnVector[] children(DataType stored, NativeSchema schema) {
        if (stored instanceof ArrayType) {
            return new ColumnVector[] {new NativeColumnVector(((ArrayType) stored).elementType(), schema.child(0), child(array, 0), 0, null)};
        }
        if (!(stored instanceof StructType)) {
            return new ColumnVector[0];
        }
        StructField[] fields = ((StructType) stored).fields();
        if (fields.length != schema.childCount()) {
            throw new TfosException("UnsupportedError: java: column " + schema.name() + ": " + fields.length + " fields cannot be read from "
                    + schema.childCount());
        }
        ColumnVector[] made = new ColumnVector[fields.length];
        for (int i = 0; i < fields.length; i++) {
            made[i] = new NativeColumnVector(fields[i].dataType(), schema.child(i), child(array, i), first, null);
        }
        return made;
    }

    // ---- Arrow's structs and formats

    static long length(long array) {
        return Platform.getLong(null, array + LENGTH);
    }

    static long offset(long array) {
        return Platform.getLong(null, array + OFFSET);
    }

    static long child(long array, int index) {
        return Platform.getLong(null, Platform.getLong(null, array + CHILDREN) + 8L * index);
    }

    private static long buffer(long array, int index) {
        return Platform.getLong(null, Platform.getLong(null, array + BUFFERS) + 8L * index);
    }

    private static boolean isBytes(String format) {
        return format.length() == 1 && "uUzZ".contains(format);
    }

    private static boolean agrees(DataType type, String format) {
        if (type instanceof ArrayType) {
            return format.equals("+l") || format.equals("+L") || format.startsWith("+w:");
        }
        if (type instanceof StructType) {
            return format.equals("+s");
        }
        if (type instanceof DecimalType) {
            DecimalType decimal = (DecimalType) type;
            return format.equals("d:" + decimal.precision() + "," + decimal.scale());
        }
        String name = type.typeName();
        if (name.startsWith("string") || name.startsWith("char(") || name.startsWith("varchar(")) {
            return format.equals("u") || format.equals("U");
        }
        if (name.startsWith("interval")) {
            return format.equals(name.contains("year") || name.contains("month") ? "tiM" : "tDu");
        }
        switch (name) {
            case "boolean":
                return format.equals("b");
            case "byte":
                return format.equals("c");
            case "short":
                return format.equals("s");
            case "integer":
                return format.equals("i");
            case "long":
                return format.equals("l");
            case "float":
                return format.equals("f");
            case "double":
                return format.equals("g");
            case "date":
                return format.equals("tdD");
            case "timestamp":
            case "timestamp_ntz":
                return format.startsWith("tsu:");
            case "binary":
                return format.equals("z") || format.equals("Z");
            default:
                return false;
        }
    }

    /** Bytes of a value, or of an offset. */
    private static int width(String format) {
        switch (format) {
            case "c":
                return 1;
            case "s":
                return 2;
            case "i":
            case "f":
            case "tdD":
            case "tiM":
            case "u":
            case "z":
            case "+l":
                return 4;
            default:
                return format.startsWith("d:") ? DECIMAL_SIZE : 8;
        }
    }

    // ---- nulls, and the end

    @Override
    public void close() {
        if (batch != null) {
            batch.columnClosed();
            batch = null;
        }
    }

    @Override
    public boolean hasNull() {
        return validity != 0;
    }

    @Override
    public int numNulls() {
        int count = 0;
        long length = validity == 0 ? 0 : length(array) + offset(array) - first;
        for (int row = 0; row < length; row++) {
            count += isNullAt(row) ? 1 : 0;
        }
        return count;
    }

    @Override
    public boolean isNullAt(int row) {
        return validity != 0 && !isSet(validity, first + row);
    }

    private static boolean isSet(long bits, long index) {
        return (Platform.getByte(null, bits + (index >> 3)) >> (index & 7) & 1) != 0;
    }

    // ---- numbers

    @Override
    public boolean getBoolean(int row) {
        return isSet(values, first + row);
    }

    @Override
    public byte getByte(int row) {
        return Platform.getByte(null, values + row);
    }

    @Override
    public short getShort(int row) {
        return Platform.getShort(null, values + 2L * row);
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, values + 4L * row);
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, values + 8L * row);
    }

    @Override
    public float getFloat(int row) {
        return Platform.getFloat(null, values + 4L * row);
    }

    @Override
    public double getDouble(int row) {
        return Platform.getDouble(null, values + 8L * row);
    }

    @Override
    public byte[] getBytes(int row, int count) {
        byte[] copy = new byte[count];
        Platform.copyMemory(null, values + row, copy, Platform.BYTE_ARRAY_OFFSET, count);
        return copy;
    }

    @Override
    public short[] getShorts(int row, int count) {
        short[] copy = new short[count];
        Platform.copyMemory(null, values + 2L * row, copy, Platform.SHORT_ARRAY_OFFSET, 2L * count);
        return copy;
    }

    @Override
    public int[] getInts(int row, int count) {
        int[] copy = new int[count];
        Platform.copyMemory(null, values + 4L * row, copy, Platform.INT_ARRAY_OFFSET, 4L * count);
        return copy;
    }

    @Override
    public long[] getLongs(int row, int count) {
        long[] copy = new long[count];
        Platform.copyMemory(null, values + 8L * row, copy, Platform.LONG_ARRAY_OFFSET, 8L * count);
        return copy;
    }

    @Override
    public float[] getFloats(int row, int count) {
        float[] copy = new float[count];
        Platform.copyMemory(null, values + 4L * row, copy, Platform.FLOAT_ARRAY_OFFSET, 4L * count);
        return copy;
    }

    @Override
    public double[] getDoubles(int row, int count) {
        double[] copy = new double[count];
        Platform.copyMemory(null, values + 8L * row, copy, Platform.DOUBLE_ARRAY_OFFSET, 8L * count);
        return copy;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        if (isNullAt(row)) {
            return null;
        }
        long at = values + (long) DECIMAL_SIZE * row;
        long low = Platform.getLong(null, at);
        if (precision <= Decimal.MAX_LONG_DIGITS()) {
            return Decimal.createUnsafe(low, precision, scale);
        }
        BigInteger high = BigInteger.valueOf(Platform.getLong(null, at + 8)).shiftLeft(64);
        BigInteger unsigned = BigInteger.valueOf(low >>> 1).shiftLeft(1).or(BigInteger.valueOf(low & 1));
        return Decimal.apply(new BigDecimal(high.or(unsigned), scale), precision, scale);
    }

    // ---- what has a length, or parts

    private long offsetAt(long row) {
        return isWide ? Platform.getLong(null, values + 8 * row) : Platform.getInt(null, values + 4 * row);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        if (isNullAt(row)) {
            return null;
        }
        long begin = offsetAt(row);
        return UTF8String.fromAddress(null, bytes + begin, Math.toIntExact(offsetAt(row + 1L) - begin));
    }

    @Override
    public byte[] getBinary(int row) {
        if (isNullAt(row)) {
            return null;
        }
        long begin = offsetAt(row);
        byte[] copy = new byte[Math.toIntExact(offsetAt(row + 1L) - begin)];
        Platform.copyMemory(null, bytes + begin, copy, Platform.BYTE_ARRAY_OFFSET, copy.length);
        return copy;
    }

    @Override
    public ColumnarArray getArray(int row) {
        if (isNullAt(row)) {
            return null;
        }
        if (listSize >= 0) {
            return new ColumnarArray(children[0], Math.toIntExact((first + row) * listSize), listSize);
        }
        int begin = Math.toIntExact(offsetAt(row));
        return new ColumnarArray(children[0], begin, Math.toIntExact(offsetAt(row + 1L) - begin));
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw new UnsupportedOperationException("maps");
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }
}
