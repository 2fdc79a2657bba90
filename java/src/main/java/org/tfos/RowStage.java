// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/** Rows on their way to the native library, one behind the other in native memory: 4 bytes of size, 4 of zero, the row. */
final class RowStage implements AutoCloseable {
    private static final long CAPACITY = 1 << 20;
    private static final int HEADER = 8;
    private static final long MAX_AGE_NANOS = 200_000_000L; // rows are not held back for longer, however slowly they come

    private long address = Platform.allocateMemory(CAPACITY);
    private long capacity = CAPACITY;
    private long size;
    private long rowCount;
    private long firstAt;

    /** Whether the row is to be added now: the stage has room for it, and its oldest row is young. */
    boolean takes(UnsafeRow row) {
        return isEmpty()
                || (size + HEADER + row.getSizeInBytes() <= capacity && System.nanoTime() - firstAt < MAX_AGE_NANOS);
    }

    /** Adds a copy of the row; an empty stage grows to its size. */
    void add(UnsafeRow row) {
        int rowSize = row.getSizeInBytes();
        if (size + HEADER + rowSize > capacity) {
            grow(size + HEADER + rowSize);
        }
        if (isEmpty()) {
            firstAt = System.nanoTime();
        }
        Platform.putInt(null, address + size, rowSize);
        Platform.putInt(null, address + size + 4, 0);
        Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), null, address + size + HEADER, rowSize);
        size += HEADER + rowSize;
        rowCount++;
    }

    private void grow(long least) {
        address = Platform.reallocateMemory(address, size, least);
        capacity = least;
    }

    boolean isEmpty() {
        return rowCount == 0;
    }

    long address() {
        return address;
    }

    /** Bytes. */
    long size() {
        return size;
    }

    long rowCount() {
        return rowCount;
    }

    void clear() {
        size = 0;
        rowCount = 0;
    }

    @Override
    public void close() {
        Platform.freeMemory(address);
        address = 0;
        capacity = 0;
    }
}
