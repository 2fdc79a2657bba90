// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.TaskContext;

/** One attempt to feed one partition. Used by one thread. */
final class Feeder implements AutoCloseable {
    private long handle;

    /** Waits until the cluster runs and the driver has named a node. */
    Feeder(byte[] options, TaskContext context) {
        NativeLibrary.load();
        handle = Native.open(options, context.partitionId(), context.taskAttemptId(), context);
    }

    /** Whether the cluster wants the partition's rows. */
    boolean isWanted() {
        return Native.firstRow(handle) >= 0;
    }

    /** How many rows of the partition earlier attempts have delivered. */
    long firstRow() {
        return Native.firstRow(handle);
    }

    /** Feeds the rows of the stage, which is empty afterwards. False when no more are wanted. */
    boolean append(RowStage stage) {
        boolean isWanted = Native.append(handle, stage.address(), stage.size(), stage.rowCount());
        stage.clear();
        return isWanted;
    }

    /** Says that the partition is whole, and waits until the node knows. */
    void finish() {
        Native.finish(handle);
    }

    @Override
    public void close() {
        Native.close(handle);
        handle = 0;
    }
}
