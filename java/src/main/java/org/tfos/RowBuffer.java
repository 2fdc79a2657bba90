// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.function.ToLongFunction;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/** Rows that the native library wrote into Java's memory, one behind the other: they can be read after the task has ended. One thread. */
final class RowBuffer {
    private static final int SIZE = 1 << 20;
    private static final int HEADER = 8; // its size, and zero

    private final UnsafeRow row;
    private byte[] bytes = new byte[SIZE];
    private int position;
    private int size;

    RowBuffer(int fieldCount) {
        row = new UnsafeRow(fieldCount);
    }

    /**
     * Replaces what has been read.
     *
     * @param writer fills an array; returns the bytes that it wrote, -1 for none, or, negative, the size that it needs
     * @return what the writer did
     */
    long fill(ToLongFunction<byte[]> writer) {
        long filled = writer.applyAsLong(bytes);
        if (filled < -1) {
            bytes = new byte[Math.toIntExact(-filled)];
            filled = writer.applyAsLong(bytes);
        }
        position = 0;
        size = (int) Math.max(filled, 0);
        return filled;
    }

    boolean isEmpty() {
        return position == size;
    }

    /** The next row; it is this until the next call. */
    UnsafeRow next() {
        long at = Platform.BYTE_ARRAY_OFFSET + position;
        int rowSize = Platform.getInt(bytes, at);
        row.pointTo(bytes, at + HEADER, rowSize);
        position += HEADER + rowSize;
        return row;
    }
}
