// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.TaskContext;

/** One attempt to feed one partition. Used by one thread. */
final class Feeder implements AutoCloseable {
    private long handle;

    /** Waits until the cluster runs and the driver has named a node. */
    Feeder(byte[] options, TaskContext context) {
        NativeLibrary.load();
        handle = Native.open(options, context.stageId(), context.partitionId(), context.taskAttemptId(), context);
    }

    /** Whether the cluster wants the partition's rows. */
    boolean isWanted() {
        return Native.firstRow(handle) >= 0;
    }

    /** How many rows of the partition earlier attempts have delivered. */
    long firstRow() {
        return Native.firstRow(handle);
    }

    /** Feeds the rows of the stage, which is empty afterwards, as {@link Native#append} does. */
    int append(RowStage stage) {
        int status = Native.append(handle, stage.address(), stage.size(), stage.rowCount());
        stage.clear();
        return status;
    }

    /** Says that the partition is whole, and waits until the node knows. */
    int finish() {
        return Native.finish(handle);
    }

    /** Fills the buffer with results, as {@link Native#nextRows} does. */
    long nextRows(byte[] buffer, boolean waiting) {
        return Native.nextRows(handle, buffer, waiting);
    }

    @Override
    public void close() {
        Native.close(handle);
        handle = 0;
    }
}
