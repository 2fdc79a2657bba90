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

    /** Opens a feeder; {@code options} as {@link DataFrameFeeder#feed} takes them. Waits hear {@code context.isInterrupted()}. */
    static native long open(byte[] options, long partition, long attempt, TaskContext context);

    /** The row that the attempt starts with; -1 when the partition is to be skipped. */
    static native long firstRow(long handle);

    /** Feeds {@code rowCount} rows that lie at {@code address}, as {@link RowStage} lays them. False: no more are wanted. */
    static native boolean append(long handle, long address, long size, long rowCount);

    static native void finish(long handle);

    static native void close(long handle);
}
