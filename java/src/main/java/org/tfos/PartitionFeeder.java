// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/** What a Spark task runs: feeds the rows of one partition, in Spark's own form, to the node that the driver names. */
final class PartitionFeeder implements VoidFunction<Iterator<InternalRow>> {
    private static final long serialVersionUID = 1L;

    private final byte[] options;
    private final DataType[] types;

    PartitionFeeder(byte[] options, DataType[] types) {
        this.options = options;
        this.types = types;
    }

    @Override
    public void call(Iterator<InternalRow> rows) {
        TaskContext context = TaskContext.get();
        try (Feeder feeder = new Feeder(options, context)) {
            // A partition that nobody wants is not computed: its iterator is left alone.
            if (feeder.isWanted()) {
                skip(rows, feeder.firstRow(), context);
                feed(rows, feeder, context);
            }
        }
    }

    /** Leaves out the rows that earlier attempts have delivered. */
    private static void skip(Iterator<InternalRow> rows, long count, TaskContext context) {
        for (long left = count; left > 0 && rows.hasNext(); left--) {
            endIfKilled(context);
            rows.next();
        }
    }

    private void feed(Iterator<InternalRow> rows, Feeder feeder, TaskContext context) {
        UnsafeProjection projection = null;
        try (RowStage stage = new RowStage()) {
            while (rows.hasNext()) {
                endIfKilled(context);
                InternalRow row = rows.next();
                if (!(row instanceof UnsafeRow)) {
                    projection = projection == null ? UnsafeProjection.create(types) : projection;
                    row = projection.apply(row);
                }
                if (!stage.takes((UnsafeRow) row) && feeder.append(stage) != Native.DONE) {
                    return;
                }
                stage.add((UnsafeRow) row);
            }
            if (stage.isEmpty() || feeder.append(stage) == Native.DONE) {
                feeder.finish();
            }
        }
    }

    private static void endIfKilled(TaskContext context) {
        if (context.isInterrupted()) {
            throw new TaskKilledException("feeding was interrupted");
        }
    }
}
