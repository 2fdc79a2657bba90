// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * A model's outputs for each row of a partition, beside what is kept of the row.
 *
 * <p>Spark may let one thread iterate and end the task in another: {@link #close} waits until a call of the library has returned.
 */
final class TransformIterator implements Iterator<InternalRow>, AutoCloseable {
    private final RowSource source;
    private final ModelCall model; // guarded by this, as is the stage
    private final int batchSize;
    private final TaskContext context;
    private final RowStage stage = new RowStage();
    private final RowBuffer buffer;
    private final JoinedRow joined = new JoinedRow();
    private boolean isClosed; // guarded by this

    TransformIterator(RowSource source, ModelCall model, int batchSize, int fieldCount, TaskContext context) {
        this.source = source;
        this.model = model;
        this.batchSize = batchSize;
        this.context = context;
        buffer = new RowBuffer(fieldCount);
    }

    @Override
    public boolean hasNext() {
        while (buffer.isEmpty()) {
            if (!takeRows() && !runBatch()) {
                close();
                return false;
            }
        }
        return true;
    }

    /** The next row, which is this until the next call of any method. */
    @Override
    public InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return source.isKeeping() ? joined.apply(source.nextKept(), buffer.next()) : buffer.next();
    }

    /** Fills the buffer with rows of the batch. */
    private synchronized boolean takeRows() {
        return !isClosed && buffer.fill(model::nextRows) > 0;
    }

    /** Calls the model with the next rows. False: there are none. */
    private boolean runBatch() {
        int count = 0;
        while (count < batchSize) {
            if (context.isInterrupted()) {
                throw new TaskKilledException("transform was interrupted");
            }
            UnsafeRow fed = source.peek();
            if (fed == null) {
                break;
            }
            stage(fed);
            source.take();
            count++;
        }
        return count > 0 && run();
    }

    private synchronized void stage(UnsafeRow fed) {
        if (isClosed) {
            return;
        }
        if (!stage.takes(fed)) {
            model.append(stage);
        }
        stage.add(fed);
    }

    private synchronized boolean run() {
        if (!isClosed) {
            model.append(stage);
            model.run();
        }
        return !isClosed;
    }

    @Override
    public synchronized void close() {
        if (!isClosed) {
            isClosed = true;
            stage.close();
            model.close();
        }
    }
}
