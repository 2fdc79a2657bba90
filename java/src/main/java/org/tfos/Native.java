// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.TaskContext;

/**
 * Every native method, to be called after {@link NativeLibrary#load}. Text is UTF-8; a handle is an address, used by one thread at a time.
 * Failures are TfosExceptions.
 */
final class Native {
    private Native() {}

    static native byte[] version();

    /** What calls give: done; no more rows are wanted; a result must be taken first. */
    static final int DONE = 0;
    static final int END = 1;
    static final int AGAIN = 2;

    /** Opens a feeder; {@code options} as {@link DataFrameFeeder} takes them. Waits end when {@code context} is interrupted or completed. */
    static native long open(byte[] options, long stage, long partition, long attempt, TaskContext context);

    /** The row that the attempt starts with; -1 when the partition is to be skipped. */
    static native long firstRow(long handle);

    /**
     * Feeds {@code rowCount} rows that lie at {@code address}, in the form of {@link RowStage}. After AGAIN they have been taken, and another
     * call, with or without rows, continues with them.
     */
    static native int append(long handle, long address, long size, long rowCount);

    static native int finish(long handle);

    /**
     * Fills {@code buffer} with rows of results, as {@link RowStage} lays them, and returns their bytes; 0 while there are none, -1 when there
     * will be none any more; other negative numbers say what size of buffer the next row needs. {@code waiting}: until there are some.
     */
    static native long nextRows(long handle, byte[] buffer, boolean waiting);

    static native void close(long handle);
}
